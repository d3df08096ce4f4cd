import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import type { Pod, RawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'
import { deadAddress, readRefusal } from '../support/refusals.ts'
import { countSceneCommands } from '../support/store.ts'

const limit = { timeout: 60_000 }
const heldBytes = 64 * 1024

/** A destination on a pod that refuses connections and on one that lives; the strategy asks the dead one first. */
async function setFanOut (t: test.TestContext, dead: readonly string[] = ['dead-1']): Promise<{ scene: HttpScene, live: Pod }> {
  const scene = await setHttpScene(t, { plugin: { cache: { ttl: 60_000 }, strategy: { pick: candidates => candidates[0] ?? null } } })
  for (const memberId of dead) await scene.register(memberId, deadAddress, ['x'])
  const live = await scene.pod('live', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  return { scene, live }
}

test('replays: a GET whose connection was refused goes to another live pod of the destination, once, and is a hit', limit, async t => {
  const { scene, live } = await setFanOut(t)
  const reply = await scene.ask(toRequest('GET /d/x?q=1', { 'x-own': 'yes' }))
  assert.deepEqual([reply.statusCode, reply.body.toString()], [200, 'ok'])
  assert.deepEqual(live.requests.map(({ method, url, headers }) => [method, url, headers['x-own']]), [['GET', '/d/x?q=1', 'yes']])
  assert.deepEqual(scene.results, ['hit'])
  assert.deepEqual(await scene.pods('x'), ['dead-1', 'live'], 'suspicion is no ground to unbind')
})

test('replays: bodies up to 64 KiB are held aside and reach the other pod byte for byte, for every method', limit, async t => {
  for (const [method, length] of [['POST', 0], ['POST', 7], ['PUT', heldBytes - 1], ['PATCH', heldBytes], ['DELETE', 3]] as const) {
    const { scene, live } = await setFanOut(t)
    const body = Buffer.alloc(length, 'abc\0')
    const reply = await scene.ask(toRequest(`${method} /d/x`, { 'content-type': 'application/json' }, body))
    assert.equal(reply.statusCode, 200, `${method} of ${length} bytes`)
    assert.equal(live.requests.length, 1)
    assert.ok(live.requests[0]?.body.equals(body))
    assert.deepEqual(live.requests[0]?.values('content-type'), ['application/json'])
    assert.deepEqual(live.requests[0]?.values('content-length'), [String(length)])
  }
})

test('replays: a body above 64 KiB, or in chunks, is not sent again: 502 at once, and the client can read it', limit, async t => {
  for (const bytes of [
    toRequest('POST /d/x', {}, Buffer.alloc(heldBytes + 1)),
    Buffer.concat([toRequest('POST /d/x', { 'transfer-encoding': 'chunked' }), toChunks(['small'])])
  ]) {
    const { scene, live } = await setFanOut(t)
    const reply = await scene.ask(bytes)
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'])
    assert.equal(reply.values('retry-after').length, 1)
    assert.equal(live.requests.length, 0)
    assert.deepEqual(scene.results, ['unreachable'])
    // The pod is suspect from then on, so the next goes to the other.
    assert.equal((await scene.ask(bytes)).statusCode, 200)
    assert.equal(live.requests.length, 1)
  }
})

test('replays: a refused upload that the client has not finished is answered 502, and its connection is closed', limit, async t => {
  const { scene } = await setFanOut(t)
  const client = await scene.client()
  client.write(toRequest('POST /d/x', { 'content-length': '100000000' }, Buffer.alloc(1000)))
  const reply = await client.readReply()
  assert.deepEqual([reply.statusCode, reply.values('connection')], [502, ['close']])
  while (await client.reader.more());
  assert.ok(client.reader.isEnded)
})

test('replays: at most once over all reasons: two dead pods are 502, and the third is asked by the next request', limit, async t => {
  const { scene, live } = await setFanOut(t, ['dead-1', 'dead-2'])
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 502)
  assert.equal(live.requests.length, 0)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  assert.equal(live.requests.length, 1)
  assert.deepEqual(scene.results, ['unreachable', 'hit'])
})

test('replays: at most once over all reasons: refused first, cut then, is 502', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { strategy: { pick: candidates => candidates[0] ?? null } } })
  await scene.register('a-dead', deadAddress, ['x'])
  const cutting: RawPod = await startRawPod(t, socket => { socket.destroy() })
  await scene.register('b-cuts', cutting.address, ['x'])
  const live = await scene.pod('c-lives', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 502)
  assert.deepEqual([cutting.requests.length, live.requests.length], [1, 0])
})

test('replays: a cut GET, sent again and refused then, is 502', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, () => { pod.close().catch(() => {}) })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 502)
  assert.equal(pod.requests.length, 1)
  assert.deepEqual(scene.results, ['unreachable'])
})

test('replays: a sole owner that refuses is asked once a request, is 502, and is neither replaced nor unbound', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { cache: { ttl: 60_000 } } })
  const owner = await scene.pod('owner', { destinationIds: ['x'] })
  const other = await scene.pod('other')
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, claimOnMiss: true, reassignOrphans: true, onResult: scene.onResult }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  await owner.close()
  for (let count = 0; count < 3; count++) assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 502)
  assert.equal(other.requests.length, 0)
  assert.deepEqual(await scene.pods('x'), ['owner'])
  assert.deepEqual(scene.results, ['hit', 'unreachable', 'unreachable', 'unreachable'])
})

test('G12: a pod that dies while cached for a minute is dropped at the first refused connection, and the next owner is asked', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { cache: { ttl: 60_000 } } })
  const owner = await scene.pod('owner', { destinationIds: ['x'] })
  const heir = await scene.pod('heir')
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, reassignOrphans: true, onResult: scene.onResult }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  const { evalsha } = await countSceneCommands(scene, async () => await scene.ask(toRequest('GET /d/x')))
  assert.equal(evalsha, undefined, 'it is cached')
  await owner.close()
  await scene.raw.del(scene.key('member', 'owner'))

  // The record is gone, which the cache cannot know; the GET finds the new owner by itself.
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(reply.statusCode, 200)
  assert.equal((await scene.ask(toRequest('POST /d/x', {}, 'body'))).statusCode, 200)
  assert.deepEqual(heir.requests.map(({ method }) => method), ['GET', 'POST'])
  assert.deepEqual(scene.results, ['hit', 'hit', 'orphan_reassigned', 'hit'])
  assert.deepEqual(await scene.pods('x'), ['heir'])
})

test('replays: a create whose pod refused goes to another pod when its body was held aside, and binds there', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { strategy: { pick: candidates => candidates[0] ?? null } } })
  await scene.register('a-dead', deadAddress)
  const live = await scene.pod('b-lives', { answer: response => { response.writeHead(201).end('{"id":"new"}') } })
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult: scene.onResult }))
  const reply = await scene.ask(toRequest('POST /d', {}, '{"a":1}'))
  assert.equal(reply.statusCode, 201)
  assert.deepEqual(live.requests.map(({ body }) => body.toString()), ['{"a":1}'])
  assert.deepEqual(await scene.pods('new'), ['b-lives'])
  assert.deepEqual(scene.results, ['spawned'])
})
