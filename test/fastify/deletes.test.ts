import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { LookupAndDeregisterOptions } from '../../src/index.ts'
import type { Pod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress, readRefusal } from '../support/refusals.ts'

async function setDelete (t: TestContext, status: number, body: string, options: Partial<LookupAndDeregisterOptions> = {}): Promise<{ scene: HttpScene, pod: Pod & Awaited<ReturnType<HttpScene['pod']>> }> {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.writeHead(status, { 'x-gone': 'y', ...(body === '' ? {} : { 'content-type': 'text/x' }) }).end(body) } })
  scene.app.delete('/d/:id', scene.coordinator.lookupAndDeregister({ destinationFrom: request => request.params.id, onResult: scene.onResult, ...options }))
  return { scene, pod }
}

test('deletes: a bare 204 is passed on, and the destination is forgotten', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  const reply = await scene.ask(toRequest('DELETE /d/x?force=1', { 'content-type': 'application/json' }, '{ "n": 1.0 }'))
  assert.deepEqual([reply.statusCode, reply.body.length, reply.values('x-gone'), reply.values('content-type'), reply.values('content-length')], [204, 0, ['y'], [], []])
  assert.deepEqual(await scene.pods('x'), [])
  assert.deepEqual(scene.results, ['deregistered'])
  assert.deepEqual(pod.requests.map(({ method, url, body }) => [method, url, body.toString()]), [['DELETE', '/d/x?force=1', '{ "n": 1.0 }']])
})

for (const status of [200, 202, 205, 404, 409, 410, 500, 503]) {
  test(`deletes: a ${status} is passed on with its body, and the destination stays`, async t => {
    const { scene, pod } = await setDelete(t, status, status === 205 ? '' : 'why\x00')
    const reply = await scene.ask(toRequest('DELETE /d/x'))
    assert.deepEqual([reply.statusCode, reply.body.toString(), reply.values('x-gone')], [status, status === 205 ? '' : 'why\x00', ['y']])
    assert.deepEqual(await scene.pods('x'), ['pod-1'])
    assert.deepEqual([scene.results, pod.requests.length], [['upstream_error'], 1])
  })
}

for (const [expectedStatus, status, isGone] of [[200, 200, true], [200, 204, false], [[200, 204], 204, true], [[200, 204], 200, true], [[200, 204], 202, false]] as const) {
  test(`deletes: with expectedStatus ${expectedStatus}, ${status} ${isGone ? 'forgets' : 'keeps'} the destination, and its body passes`, async t => {
    const body = status === 204 ? '' : '{ "gone": 1.0 }'
    const { scene } = await setDelete(t, status, body, { expectedStatus })
    const reply = await scene.ask(toRequest('DELETE /d/x'))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [status, body])
    assert.deepEqual(await scene.pods('x'), isGone ? [] : ['pod-1'])
    assert.deepEqual(scene.results, [isGone ? 'deregistered' : 'upstream_error'])
  })
}

test('deletes: a destination of dead pods alone is forgotten without one: 204, and only then', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1', 'dead-2')
  const reply = await scene.ask(toRequest('DELETE /d/orphan'))
  assert.deepEqual([reply.statusCode, reply.body.length, reply.values('content-type')], [204, 0, []])
  assert.deepEqual([await scene.pods('orphan'), scene.results, pod.requests.length], [[], ['deregistered_dead_pod'], 0])
  const again = await scene.ask(toRequest('DELETE /d/orphan'))
  assert.deepEqual([again.statusCode, readRefusal(again).code], [404, 'PLT_COORDINATOR_NOT_FOUND'])
  assert.deepEqual(scene.results, ['deregistered_dead_pod', 'not_found'])
})

test('deletes: a destination of dead pods that a live one takes meanwhile stays with that one: 404', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  const { registry } = scene.coordinator
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  const deregister = registry.deregisterDestination.bind(registry)
  registry.deregisterDestination = async (...args) => {
    await scene.raw.sadd(scene.key('destination', 'orphan'), 'pod-1')
    return await deregister(...args)
  }
  assert.equal((await scene.ask(toRequest('DELETE /d/orphan'))).statusCode, 404)
  assert.deepEqual([(await scene.pods('orphan')).includes('pod-1'), scene.results, pod.requests.length], [true, ['not_found'], 0])
})

test('deletes: a destination that never was is 404 with notFoundMessage', async t => {
  const { scene, pod } = await setDelete(t, 204, '', { notFoundMessage: 'No such thing' })
  const reply = await scene.ask(toRequest('DELETE /d/other'))
  const { error, code } = readRefusal(reply)
  assert.deepEqual([reply.statusCode, error, code], [404, 'No such thing', 'PLT_COORDINATOR_NOT_FOUND'])
  assert.deepEqual([scene.results, pod.requests.length, await scene.pods('x')], [['not_found'], 0, ['pod-1']])
})

test('deletes: with claimOnMiss and reassignOrphans a pod is asked in any case, and the destination forgotten on its 204', async t => {
  const { scene, pod } = await setDelete(t, 204, '', { claimOnMiss: true, reassignOrphans: true })
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  for (const id of ['orphan', 'never-bound', 'x']) assert.equal((await scene.ask(toRequest(`DELETE /d/${id}`))).statusCode, 204, id)
  assert.deepEqual(pod.requests.map(({ url }) => url), ['/d/orphan', '/d/never-bound', '/d/x'])
  assert.deepEqual([await scene.pods('orphan'), await scene.pods('never-bound'), await scene.pods('x')], [[], [], []])
  assert.deepEqual(scene.results, ['deregistered', 'deregistered', 'deregistered'])
})

test('deletes: with claimOnMiss and reassignOrphans and no pod that takes anything it is noPodStatus, and nothing is forgotten', async t => {
  const { scene } = await setDelete(t, 204, '', { claimOnMiss: true, reassignOrphans: true, noPodStatus: 503 })
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'draining', '1')
  for (const id of ['orphan', 'never-bound']) {
    const reply = await scene.ask(toRequest(`DELETE /d/${id}`))
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [503, 'PLT_COORDINATOR_NOT_FOUND'], id)
  }
  assert.deepEqual([await scene.pods('orphan'), await scene.pods('never-bound')], [['dead-1'], []])
  assert.deepEqual(scene.results, ['not_found', 'not_found'])
})

test('deletes: a pod that cannot be reached keeps the destination: 502 (G06)', async t => {
  const { scene } = await setDelete(t, 204, '')
  await scene.register('pod-2', deadAddress, ['y'])
  const reply = await scene.ask(toRequest('DELETE /d/y'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'])
  assert.deepEqual([await scene.pods('y'), scene.results], [['pod-2'], ['unreachable']])
})

test('deletes: a pod that cuts the connection keeps the destination, and is asked once', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  pod.answer = (_response, _request, raw) => { raw.socket.destroy() }
  const reply = await scene.ask(toRequest('DELETE /d/x'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'])
  assert.deepEqual([await scene.pods('x'), pod.requests.length], [['pod-1'], 1])
})

test('deletes: a destination that was given to another pod meanwhile stays with that one', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  const other = await scene.pod('pod-2')
  pod.answer = response => {
    scene.raw.multi().del(scene.key('destination', 'x')).sadd(scene.key('destination', 'x'), 'pod-2').exec()
      .then(() => response.writeHead(204).end(), error => response.destroy(error as Error))
  }
  const reply = await scene.ask(toRequest('DELETE /d/x'))
  assert.equal(reply.statusCode, 204)
  assert.deepEqual([await scene.pods('x'), other.requests.length], [['pod-2'], 0])
})

test('deletes: the destination is forgotten before the client hears of it, and no longer cached', async t => {
  const { scene, pod } = await setDelete(t, 204, '')
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 204)
  assert.equal((await scene.ask(toRequest('DELETE /d/x'))).statusCode, 204)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 404)
  assert.equal(pod.requests.length, 2)
})

test('deletes: onResult throws: the answer and the forgetting are not lost (G01)', async t => {
  const { scene } = await setDelete(t, 204, '', { onResult: () => { throw new Error('Thrown by the test') } })
  assert.equal((await scene.ask(toRequest('DELETE /d/x'))).statusCode, 204)
  assert.deepEqual(await scene.pods('x'), [])
})
