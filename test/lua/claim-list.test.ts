import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../../src/errors.ts'
import type { ClaimRequest } from '../../src/scripts.ts'
import { manyIds, setScriptScene } from '../support/script-scene.ts'

const request = (destinationId: string, memberIds: string[], claimOnMiss = true, reassignOrphans = true): ClaimRequest => {
  return { destinationId, claimOnMiss, reassignOrphans, memberIds }
}

test('claim.lua: a list answers each id in its order, with flags and candidates of its own', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { load: 1 })
  await scene.register('pod-2', 'two', { load: 2 })
  await scene.bindRaw('lost', 'gone')
  await scene.bindRaw('left', 'gone')
  await scene.bindRaw('held', 'pod-2')
  await scene.heard()

  const decisions = await scene.plain.claim([
    request('new', ['pod-2']), request('none', ['pod-1'], false), request('lost', ['pod-2', 'pod-1']), request('left', ['pod-1'], true, false),
    request('held', ['pod-1']), request('refused', ['gone']), request('unasked', [])
  ])

  const seen = decisions.map(decision => {
    assert.ok(!isCoordinatorError(decision))
    return [decision.status, decision.live.map(({ memberId }) => memberId).join()]
  })
  assert.deepEqual(seen, [
    ['claimed', 'pod-2'], ['empty', ''], ['reassigned', 'pod-1'], ['orphaned', ''], ['bound', 'pod-2'], ['refused', ''], ['refused', '']
  ])
  assert.deepEqual(await scene.pods('left'), ['gone'])
  assert.deepEqual(await scene.heard(), ['d lost'])
})

test('claim.lua: the same id twice in a list is claimed once', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.register('pod-2', 'two')

  const decisions = await scene.plain.claim([request('d', ['pod-1']), request('d', ['pod-2'])])

  const statuses = decisions.map(decision => isCoordinatorError(decision) ? decision.code : [decision.status, decision.live[0]?.memberId])
  assert.deepEqual(statuses, [['claimed', 'pod-1'], ['bound', 'pod-1']])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})

test('claim.lua: a list spreads its claims by what it has just added', async t => {
  const scene = await setScriptScene(t)
  for (const memberId of ['pod-1', 'pod-2', 'pod-3', 'pod-4']) await scene.register(memberId, 'one')

  await scene.plain.claim(manyIds(32, 'd').map(id => request(id, ['pod-1', 'pod-2', 'pod-3', 'pod-4'])))

  for (const memberId of ['pod-1', 'pod-2', 'pod-3', 'pod-4']) assert.equal((await scene.record(memberId))['pending'], '8')
})

test('claim.lua: a pod of many ids is told once, with all that the list added to it', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { load: 4 })
  await scene.register('pod-2', 'one', { load: 9 })
  await scene.rawMember('plain', { load: 20 })
  await scene.bindRaw('held', 'pod-1', 'pod-2')
  const ids = ['held', ...manyIds(10, 'd'), 'odd', 'held']
  const requests = ids.map(id => request(id, id === 'odd' ? ['plain'] : ['pod-1', 'gone', 'pod-2']))
  const args = requests.flatMap(({ destinationId, memberIds }) => [destinationId, '1', '1', String(memberIds.length), ...memberIds])

  const [pods, answers, figures] = await scene.run('claim', [scene.names.destinationBase, scene.names.memberBase, scene.names.ownedBase], ['channel', '0', ...args]) as [unknown[], unknown[], unknown[]]

  const told = new Map(Array.from({ length: pods.length / 6 }, (_, at) => [pods[at * 6], pods.slice(at * 6 + 2, at * 6 + 4)]))
  assert.deepEqual([...told.keys()].sort(), ['plain', 'pod-1', 'pod-2'])
  assert.deepEqual([told.get('pod-1'), told.get('pod-2'), told.get('plain')], [['4', '8'], ['9', '2'], ['20', '1']])
  assert.deepEqual(figures, ['pod-1', '4', '8', 'pod-2', '9', '2', 'plain', '20', '1'])
  assert.equal(answers.filter(word => word === 'claimed').length, 11)
  for (const [memberId, pending] of [['pod-1', '8'], ['pod-2', '2']] as const) assert.equal((await scene.record(memberId))['pending'], pending)
  assert.match((await scene.record('plain'))['plainPending'] ?? '', /^\d+:20\/1$/)
})

test('claim.lua: of 32 ids those that fail write nothing and the others are claimed', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.raw.set(scene.key('member', 'broken'), 'text', 'EX', 60)
  await scene.register('no-index', 'one')
  await scene.raw.set(scene.key('owned', 'no-index'), 'text', 'EX', 60)
  const requests = manyIds(32, 'd').map(id => request(id, ['pod-1']))
  await scene.raw.set(scene.key('destination', 'd-0'), 'text', 'EX', 60)
  requests[5] = request('d-5', ['pod-1', 'broken'])
  requests[9] = request('d-9', ['no-index'])
  await scene.bindRaw('d-31', 'broken')

  const decisions = await scene.indexed.claim(requests)

  const failed = [0, 5, 9, 31]
  assert.equal(decisions.length, 32)
  for (const [at, decision] of decisions.entries()) {
    if (failed.includes(at)) {
      assert.ok(isCoordinatorError(decision, 'PLT_COORDINATOR_STORE_REFUSED'), `d-${at}`)
      assert.match(decision.message, /WRONGTYPE/)
    } else {
      assert.ok(!isCoordinatorError(decision), `d-${at}`)
      assert.equal(decision.status, 'claimed')
      assert.deepEqual(await scene.pods(`d-${at}`), ['pod-1'])
    }
  }
  assert.deepEqual(await scene.pods('d-5'), [])
  assert.deepEqual(await scene.pods('d-9'), [])
  assert.deepEqual(await scene.pods('d-31'), ['broken'])
  assert.equal((await scene.owned('pod-1')).length, 28)
  assert.equal((await scene.record('pod-1'))['pending'], '28')
  assert.equal((await scene.record('no-index'))['pending'], '0')
})

test('claim.lua: an owned set of a dead pod that cannot be written costs nobody the claim', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('d', 'gone-1', 'gone-2')
  await scene.raw.set(scene.key('owned', 'gone-1'), 'text', 'EX', 60)
  await scene.raw.sadd(scene.key('owned', 'gone-2'), 'd')

  assert.equal((await scene.claim('d', ['pod-1'], { isIndexed: true })).status, 'reassigned')
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
  assert.deepEqual(await scene.owned('gone-2'), [])
})
