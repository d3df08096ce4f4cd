import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress } from '../support/refusals.ts'

const limit = { timeout: 60_000 }

async function assertTold (scene: HttpScene, line: string, statusCode: number, ...results: string[]): Promise<void> {
  const before = scene.results.length
  const reply = await scene.ask(toRequest(line))
  assert.equal(reply.statusCode, statusCode, line)
  assert.deepEqual(scene.results.slice(before), results, line)
}

test('lookupAndProxy: a first touch, a cached and a joined answer are hit, what has no pod is not_found', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1')
  scene.app.get('/claim/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, claimOnMiss: true, onResult: scene.onResult }))
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  await assertTold(scene, 'GET /d/x', 404, 'not_found')
  await assertTold(scene, 'GET /claim/x', 200, 'hit')
  await assertTold(scene, 'GET /d/x', 200, 'hit')
  await Promise.all(Array.from({ length: 20 }, () => scene.ask(toRequest('GET /claim/y'))))
  assert.deepEqual(scene.results.slice(3), Array.from({ length: 20 }, () => 'hit'))
  assert.deepEqual(await scene.pods('y'), ['pod-1'])
})

test('lookupAndProxy: of any number of requests for an orphan one is told orphan_reassigned', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1')
  await scene.raw.sadd(scene.key('destination', 'x'), 'dead-1')
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, reassignOrphans: true, onResult: scene.onResult }))
  await Promise.all(Array.from({ length: 20 }, () => scene.ask(toRequest('GET /d/x'))))
  assert.equal(scene.results.length, 20)
  assert.equal(scene.results.filter(result => result === 'orphan_reassigned').length, 1)
  assert.equal(scene.results.filter(result => result === 'hit').length, 19)
  assert.equal(pod.requests.length, 20)
})

test('lookupLockAndProxy: hit and not_found', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1')
  await pod.member.registerLock('lock', 'x')
  scene.app.get('/l/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult: scene.onResult }))
  await assertTold(scene, 'GET /l/lock', 200, 'hit')
  await assertTold(scene, 'GET /l/none', 404, 'not_found')
})

test('pickAndRegister: spawned, unavailable, refused and upstream_error', limit, async t => {
  const scene = await setHttpScene(t)
  scene.app.get('/create/:status', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, ifBound: 'refuse', onResult: scene.onResult }))
  await assertTold(scene, 'GET /create/201', 503, 'unavailable')
  const pod = await scene.pod('pod-1', { answer: (response, { url }) => { response.writeHead(Number(url.split('/')[2]), { 'content-type': 'application/json' }).end('{"id":"x"}') } })
  await assertTold(scene, 'GET /create/201', 201, 'spawned')
  await assertTold(scene, 'GET /create/409', 409, 'upstream_error')
  await scene.pod('pod-2', { destinationIds: ['x'] })
  await scene.raw.srem(scene.key('destination', 'x'), 'pod-1')
  await scene.raw.del(scene.key('member', 'pod-2'))
  await assertTold(scene, 'GET /create/201', 409, 'refused')
  assert.equal(pod.requests.length, 3)
  assert.deepEqual(await scene.pods('x'), ['pod-2'])
})

test('lookupAndDeregister: deregistered, upstream_error, not_found and deregistered_dead_pod', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', { destinationIds: ['x', 'y'], answer: (response, { url }) => { response.writeHead(url.endsWith('/y') ? 500 : 204).end() } })
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1', 'dead-2')
  scene.app.delete('/d/:id', scene.coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  await assertTold(scene, 'DELETE /d/x', 204, 'deregistered')
  await assertTold(scene, 'DELETE /d/x', 404, 'not_found')
  await assertTold(scene, 'DELETE /d/y', 500, 'upstream_error')
  await assertTold(scene, 'DELETE /d/orphan', 204, 'deregistered_dead_pod')
  assert.deepEqual([await scene.pods('x'), await scene.pods('y'), await scene.pods('orphan')], [[], ['pod-1'], []])
})

test('every helper: bad_request, unreachable and timeout, with the request they belong to', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.register('dead', deadAddress, ['dead'])
  await scene.pod('slow', { destinationIds: ['slow'], answer: () => {} })
  const told: string[] = []
  scene.app.get('/d/:id?', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id as string | undefined, requestTimeout: 200, onResult: (result, request) => { told.push(`${request.params.id ?? ''} ${result}`) }
  }))
  for (const path of ['/d/', '/d/dead', '/d/slow', '/d/none']) await scene.ask(toRequest(`GET ${path}`))
  assert.deepEqual(told, [' bad_request', 'dead unreachable', 'slow timeout', 'none not_found'])
})

test('onResult: it is told once also when the pod cuts its reply', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', {
    destinationIds: ['x'],
    answer: response => {
      response.write('part')
      setTimeout(() => response.destroy(), 50)
    }
  })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(reply.isComplete, false)
  assert.deepEqual(scene.results, ['hit'])
})

test('onResult: 300 requests of every kind at once are told 300 results', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', { destinationIds: ['x'] })
  await scene.register('dead', deadAddress, ['dead'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  await Promise.all(Array.from({ length: 100 }, () => ['x', 'dead', 'none'].map(id => scene.ask(toRequest(`GET /d/${id}`)))).flat())
  const count = (result: string): number => scene.results.filter(told => told === result).length
  assert.deepEqual([count('hit'), count('unreachable'), count('not_found'), scene.results.length], [100, 100, 100, 300])
})

test('G37: a pod whose health check drains it gets nothing new, and after deregister() nothing at all, although its process goes on', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { cache: false } })
  const broken = await scene.pod('broken', { destinationIds: ['x'] })
  const sound = await scene.pod('sound')
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, claimOnMiss: true, reassignOrphans: true, onResult: scene.onResult }))
  await broken.member.setDraining(true)
  for (const id of ['new-1', 'new-2', 'new-3']) await scene.ask(toRequest(`GET /d/${id}`))
  assert.deepEqual([broken.requests.length, sound.requests.length], [0, 3])
  await scene.ask(toRequest('GET /d/x'))
  assert.equal(broken.requests.length, 1, 'what it holds is still sent to it')
  await broken.member.deregister()
  await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([broken.requests.length, sound.requests.length], [1, 4])
  assert.deepEqual(scene.results, ['hit', 'hit', 'hit', 'hit', 'orphan_reassigned'])
})
