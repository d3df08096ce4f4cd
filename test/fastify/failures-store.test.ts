import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { startPod } from '../support/http-pod.ts'
import type { Pod } from '../support/http-pod.ts'
import { startOwnStore } from '../support/own-store.ts'
import type { OwnStore } from '../support/own-store.ts'
import { toRequest } from '../support/raw-http.ts'
import { readRefusal } from '../support/refusals.ts'
import { setScene, until } from '../support/store.ts'

const lines = ['GET /d/x', 'GET /l/lock', 'DELETE /d/x', 'POST /d']

async function setStoreScene (t: test.TestContext): Promise<{ scene: HttpScene, store: OwnStore, pod: Pod }> {
  const store = await startOwnStore(t)
  const scene = await setHttpScene(t, { plugin: { redis: store.url, storeTimeout: 500 } })
  const pod = await startPod(t, response => { response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"new"}') })
  const own = setScene(t, store.url, scene.keyPrefix)
  const member = await own.liveMember('pod-1', { address: pod.address, ttl: 300 })
  await member.addToDestination('x')
  await member.registerLock('lock', 'x')
  const { onResult } = scene
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))
  scene.app.get('/l/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult }))
  scene.app.delete('/d/:id', scene.coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, onResult }))
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult }))
  await scene.listen()
  return { scene, store, pod }
}

async function assertAway (scene: HttpScene): Promise<void> {
  const replies = await Promise.all(lines.map(line => scene.ask(toRequest(line))))
  for (const [at, reply] of replies.entries()) {
    const { code, error } = readRefusal(reply)
    assert.deepEqual([reply.statusCode, code, error, reply.values('retry-after')], [503, 'PLT_COORDINATOR_UNAVAILABLE', 'Service Unavailable', ['1']], lines[at])
  }
}

test('G09, G22: each helper answers 503 with Retry-After within the store timeout while the store is frozen, and recovers', async t => {
  const { scene, store, pod } = await setStoreScene(t)
  assert.equal((await scene.ask(toRequest('GET /l/lock'))).statusCode, 201)
  store.freeze()
  const before = performance.now()
  await assertAway(scene)
  // 500 ms were asked; what is above is for a loaded machine.
  assert.ok(performance.now() - before < 5000)
  assert.deepEqual(scene.results, ['hit', ...lines.map(() => 'store_unavailable')])
  assert.equal(pod.requests.length, 1)
  store.thaw()
  await until(async () => (await scene.ask(toRequest('GET /l/lock'))).statusCode === 201, 'it works again')
})

test('G22: each helper answers 503 while the store is gone; what is cached is still served', async t => {
  const { scene, store, pod } = await setStoreScene(t)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 201)
  await store.kill()
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 201)
  const reply = await scene.ask(toRequest('GET /d/y'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [503, 'PLT_COORDINATOR_UNAVAILABLE'])
  assert.equal(pod.requests.length, 2)
  assert.deepEqual(scene.results, ['hit', 'hit', 'store_unavailable'])
})

test('G09: a create whose binding could not be written is 503, result store_unavailable, and the pod was asked once', async t => {
  const { scene, store, pod } = await setStoreScene(t)
  pod.answer = response => {
    store.freeze()
    response.writeHead(201, { 'content-type': 'application/json', 'x-pod': '1' }).end('{"id":"new"}')
  }

  const reply = await scene.ask(toRequest('POST /d', {}, '{}'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code, reply.values('x-pod')], [503, 'PLT_COORDINATOR_UNAVAILABLE', []])
  assert.deepEqual(scene.results, ['store_unavailable'])
  assert.equal(pod.requests.length, 1)
})
