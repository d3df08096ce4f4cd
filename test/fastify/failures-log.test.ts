import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { askForRefusal, deadAddress, refusalLines } from '../support/refusals.ts'
import { until } from '../support/store.ts'

test('G06: records with an address that is no URL, or of a name that does not exist, cost a 5xx that shows nothing, not the process', async t => {
  const scene = await setHttpScene(t)
  for (const [id, address] of [['bad', 'not a url'], ['port', 'http://127.0.0.1:99999'], ['scheme', 'ftp://127.0.0.1/'], ['name', 'http://no-such-pod.invalid:3000']] as const) {
    await scene.rawMember(id, { address })
    await scene.raw.sadd(scene.key('destination', id), id)
  }
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))

  for (const id of ['bad', 'port', 'scheme', 'name']) {
    const refusal = await askForRefusal(scene, `/d/${id}`)
    assert.equal(refusal.statusCode, 502, id)
    assert.doesNotMatch(JSON.stringify(refusal), /not a url|99999|ftp|invalid:3000/)
  }
  assert.equal(scene.results.length, 4)
})

test('refusals: each writes one line to the log, which says code, destination, member, address and cause', async t => {
  const scene = await setHttpScene(t)
  await scene.register('pod-1', deadAddress, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))

  await askForRefusal(scene, '/d/x')
  await until(() => scene.logs.some(({ msg }) => msg === 'request completed'), 'the request is logged as completed')
  const [line, ...others] = refusalLines(scene)
  assert.deepEqual(others, [])
  assert.deepEqual([line?.code, line?.destinationId, line?.memberId, line?.address], ['PLT_COORDINATOR_POD_UNREACHABLE', 'x', 'pod-1', deadAddress])
  assert.match(JSON.stringify(line?.err), /ECONNREFUSED/)
  assert.equal(typeof line?.reqId, 'string')
  assert.deepEqual(scene.logs.filter(({ level, code }) => level >= 40 && code !== line?.code), [], 'nothing else warns of it')
})

test('refusals: the line of a destination without a pod names the destination', async t => {
  const scene = await setHttpScene(t)
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))

  await askForRefusal(scene, '/d/x')
  const lines = refusalLines(scene)
  assert.deepEqual(lines.map(({ code, destinationId }) => [code, destinationId]), [['PLT_COORDINATOR_NOT_FOUND', 'x']])
})
