import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import test from 'node:test'
import type { Registry } from '../../src/index.ts'
import { setCreate } from '../support/creates.ts'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { startOwnStore } from '../support/own-store.ts'
import { toRequest } from '../support/raw-http.ts'
import type { RawReply } from '../support/raw-http.ts'
import { readRefusal } from '../support/refusals.ts'
import { setScene, until } from '../support/store.ts'

const headers = { 'content-type': 'application/json', 'content-encoding': 'identity', 'set-cookie': 'made=1', location: '/d/new', etag: '"1"', 'x-made': '1' }
const made = '{"id":"new","secret":"of the pod"}'

/** Has the bindings of a registry wait until they are let go. */
function holdBindings (registry: Registry): { isWaiting: boolean, go (): void } {
  const held = { isWaiting: false, go: () => {} }
  const promise = new Promise<void>(resolve => { held.go = resolve })
  const bindPod = registry.bindPod.bind(registry)
  registry.bindPod = async (...args) => {
    held.isWaiting = true
    await promise
    return await bindPod(...args)
  }
  return held
}

/** Nothing of what the pod said is left. */
function assertReplaced (reply: RawReply): void {
  for (const name of ['set-cookie', 'location', 'etag', 'x-made', 'content-encoding']) assert.deepEqual(reply.values(name), [], name)
  assert.doesNotMatch(reply.body.toString(), /secret/)
  assert.deepEqual(reply.values('content-length'), [String(reply.body.length)])
}

test('creates: the client hears nothing before the id is bound', async t => {
  const { scene, bound } = await setCreate(t, 201, headers, made)
  const held = holdBindings(scene.coordinator.registry)
  const client = await scene.client()
  client.write(toRequest('POST /d'))
  await until(() => held.isWaiting, 'the binding is under way')
  // Goes the same way meanwhile: what had been sent would have come too.
  assert.equal((await scene.ask(toRequest('GET /else'))).statusCode, 404)
  assert.deepEqual([client.reader.bytes.length, scene.results, await bound()], [0, [], []])
  held.go()
  assert.equal((await client.readReply()).statusCode, 201)
  assert.deepEqual([scene.results, await bound()], [['spawned'], ['new']])
})

test('creates: a client that leaves while the id is being bound does not stop it (G34)', async t => {
  const { scene, bound } = await setCreate(t, 201, headers, made)
  const held = holdBindings(scene.coordinator.registry)
  const client = await scene.client()
  client.write(toRequest('POST /d'))
  await until(() => held.isWaiting, 'the binding is under way')
  client.socket.destroy()
  await until(async () => await countConnections(scene.app.server) === 0, 'the application saw the client leave')
  held.go()
  await until(() => scene.results.length > 0, 'the result is told')
  assert.deepEqual([scene.results, await bound()], [['spawned'], ['new']])
})

test('creates: a client that leaves while the reply of the pod comes does not stop the binding (G34)', async t => {
  let hasHead = false
  const { scene, pod, bound } = await setCreate(t, 201, headers, made, {
    rewriteHeaders: headers => {
      hasHead = true
      return headers
    }
  })
  let end: (() => void) | undefined
  pod.answer = response => {
    response.writeHead(201, headers)
    response.write(made.slice(0, 5))
    end = () => { response.end(made.slice(5)) }
  }
  const client = await scene.client()
  client.write(toRequest('POST /d'))
  await until(() => hasHead, 'the head of the reply is there')
  client.socket.destroy()
  await until(async () => await countConnections(scene.app.server) === 0, 'the application saw the client leave')
  end?.()
  await until(async () => (await bound()).length > 0, 'the id is bound')
  assert.deepEqual(await scene.pods('new'), ['pod-1'])
  assert.equal(scene.results.length, 1)
  assert.deepEqual(pod.requests.map(({ isCancelled }) => isCancelled), [false])
})

test('creates: a pod that began to drain in between is refused: 503 with refusedMessage, nothing bound, nothing of its reply left', async t => {
  for (const refusedMessage of [undefined, 'Try another time']) {
    const { scene, pod, create, bound } = await setCreate(t, 201, headers, '', { refusedMessage })
    pod.answer = response => {
      pod.member.setDraining(true).then(() => response.writeHead(201, headers).end(made), error => response.destroy(error as Error))
    }
    const reply = await create()
    assert.equal(reply.statusCode, 503)
    const { code, error } = readRefusal(reply)
    assert.deepEqual([code, error], ['PLT_COORDINATOR_POD_DRAINING', refusedMessage ?? 'Service Unavailable'])
    assert.deepEqual(reply.values('retry-after'), ['1'])
    assertReplaced(reply)
    assert.deepEqual([scene.results, await bound(), pod.requests.length], [['refused'], [], 1])
  }
})

test('creates: a pod that left the list in between is refused as one that drains', async t => {
  const { scene, pod, create, bound } = await setCreate(t, 201, headers, '')
  pod.answer = response => {
    pod.member.deregister().then(() => response.writeHead(201, headers).end(made), error => response.destroy(error as Error))
  }
  const reply = await create()
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [503, 'PLT_COORDINATOR_POD_DRAINING'])
  assertReplaced(reply)
  assert.deepEqual([scene.results, await bound()], [['refused'], []])
})

test('creates: with no pod that takes anything new, 503 with unavailableMessage and Retry-After', async t => {
  for (const unavailableMessage of [undefined, 'All full']) {
    const { scene, pod, create } = await setCreate(t, 201, headers, made, { unavailableMessage })
    await pod.member.setDraining(true)
    const reply = await create()
    const { code, error } = readRefusal(reply)
    assert.deepEqual([reply.statusCode, code, error, reply.values('retry-after')], [503, 'PLT_COORDINATOR_NO_PODS', unavailableMessage ?? 'Service Unavailable', ['1']])
    assert.deepEqual([scene.results, pod.requests.length], [['unavailable'], 0])
  }
})

for (const ifBound of [undefined, 'add', 'refuse'] as const) {
  test(`creates: of an id that is bound elsewhere, ifBound ${ifBound} ${ifBound === 'refuse' ? 'is 409 and leaves the binding' : 'adds the pod'}`, async t => {
    const { scene, create } = await setCreate(t, 201, headers, made, { ifBound, refusedMessage: 'Already there' })
    await scene.raw.sadd(scene.key('destination', 'new'), 'pod-0')
    const reply = await create()
    if (ifBound === 'refuse') {
      const { code, error } = readRefusal(reply)
      assert.deepEqual([reply.statusCode, code, error], [409, 'PLT_COORDINATOR_ALREADY_BOUND', 'Already there'])
      assertReplaced(reply)
      assert.deepEqual([await scene.pods('new'), scene.results], [['pod-0'], ['refused']])
    } else {
      assert.deepEqual([reply.statusCode, reply.body.toString()], [201, made])
      assert.deepEqual([await scene.pods('new'), scene.results], [['pod-0', 'pod-1'], ['spawned']])
    }
  })
}

test('creates: ifBound refuse passes an id that is bound to the same pod already', async t => {
  const { scene, pod, create } = await setCreate(t, 201, headers, made, { ifBound: 'refuse' })
  await pod.member.addToDestination('new')
  const reply = await create()
  assert.deepEqual([reply.statusCode, reply.body.toString()], [201, made])
  assert.deepEqual([await scene.pods('new'), scene.results], [['pod-1'], ['spawned']])
})

test('creates: a store that fails after the 2xx of the pod is 503 with Retry-After, and nothing of the reply is left', async t => {
  const store = await startOwnStore(t)
  const scene = await setHttpScene(t, { plugin: { redis: store.url, storeTimeout: 500 } })
  const pod = await startPod(t)
  await setScene(t, store.url, scene.keyPrefix).liveMember('pod-1', { address: pod.address, ttl: 300 })
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult: scene.onResult }))
  pod.answer = response => { store.kill().then(() => response.writeHead(201, headers).end(made), error => response.destroy(error as Error)) }
  const reply = await scene.ask(toRequest('POST /d'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code, reply.values('retry-after')], [503, 'PLT_COORDINATOR_UNAVAILABLE', ['1']])
  assertReplaced(reply)
  assert.deepEqual([scene.results, pod.requests.length], [['store_unavailable'], 1])
})

/** How many connections a server has. */
function countConnections (server: Server): Promise<number> {
  return new Promise((resolve, reject) => server.getConnections((error, count) => error === null ? resolve(count) : reject(error)))
}
