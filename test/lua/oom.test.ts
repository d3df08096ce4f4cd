import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../../src/errors.ts'
import { startOwnStore } from '../support/own-store.ts'
import { byRegistry, heldLock, memberRecord, setScriptScene, unranked } from '../support/script-scene.ts'
import type { ScriptScene } from '../support/script-scene.ts'

const unavailable = { code: 'PLT_COORDINATOR_UNAVAILABLE', message: /OOM/ }

/** All keys of the prefix with what they hold. */
async function snapshot (scene: ScriptScene): Promise<Record<string, unknown>> {
  const contents: Record<string, unknown> = {}
  for (const name of await scene.keys()) {
    const key = `${scene.keyPrefix}:${name}`
    contents[name] = await scene.raw.type(key) === 'hash' ? await scene.raw.hgetall(key) : (await scene.raw.smembers(key)).sort()
  }
  return contents
}

async function setFullScene (t: test.TestContext): Promise<{ scene: ScriptScene, fill: () => Promise<unknown>, free: () => Promise<unknown> }> {
  const store = await startOwnStore(t, ['--maxmemory-policy', 'noeviction'])
  const scene = await setScriptScene(t, { url: store.url })
  return { scene, fill: () => scene.raw.config('SET', 'maxmemory', '1'), free: () => scene.raw.config('SET', 'maxmemory', '0') }
}

test('a full server: what adds is refused with nothing half written, each id of a list for itself (G24)', async t => {
  const { scene, fill, free } = await setFullScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.rawMember('plain')
  await scene.pod.registerLock(writer, heldLock('held', 'd', 'a', 'b'), 60_000)
  await scene.bindRaw('lost', 'gone-1', 'gone-2')
  await scene.bindRaw('bound', 'pod-1')
  for (const memberId of ['gone-1', 'gone-2']) await scene.raw.sadd(scene.key('owned', memberId), 'lost')
  await scene.heard()
  const before = await snapshot(scene)
  await fill()

  for (const scripts of [scene.plain, scene.indexed]) {
    const decisions = await scripts.claim(['new', 'bound', 'lost', 'plain'].map(destinationId => {
      return { destinationId, claimOnMiss: true, reassignOrphans: true, memberIds: [destinationId === 'plain' ? 'plain' : 'pod-1'] }
    }))
    const seen = decisions.map(decision => isCoordinatorError(decision) ? decision.code : decision.status)
    assert.deepEqual(seen, ['PLT_COORDINATOR_UNAVAILABLE', 'bound', 'PLT_COORDINATOR_UNAVAILABLE', 'PLT_COORDINATOR_UNAVAILABLE'])
    await assert.rejects(scripts.bind('d', byRegistry('pod-1')), unavailable)
    await assert.rejects(scripts.bind('d', byRegistry('plain')), unavailable)
  }
  await assert.rejects(scene.register('pod-1', 'two'), unavailable)
  await assert.rejects(scene.register('pod-9', 'two'), unavailable)
  await assert.rejects(scene.pod.registerLock(writer, heldLock('new', 'd', 'a', 'b'), 60_000), unavailable)
  await assert.rejects(scene.pod.registerLock(writer, heldLock('held', 'e'), 60_000), unavailable)

  assert.deepEqual(await snapshot(scene), before)
  assert.deepEqual(await scene.heard(), [])
  await free()
  assert.equal((await scene.claim('lost', ['pod-1'], { isIndexed: true })).status, 'reassigned')
})

test('a full server: live pods stay live, beats renew, adopt a plain record, and fail whole where it is gone (G24)', async t => {
  const { scene, fill } = await setFullScene(t)
  const { writer } = await scene.register('pod-1', 'one', { ttlMs: 5000 })
  await scene.pod.registerLock(writer, heldLock('lock', 'd'), 5000)
  await scene.rawMember('plain', {}, 5)
  const { writer: gone } = await scene.register('gone', 'one')
  await scene.raw.del(scene.key('member', 'gone'))
  await fill()

  const beat = await scene.beat(writer, { load: 4, isDraining: true, lockIds: ['lock'], lockTtlMs: 600_000 })

  assert.deepEqual([beat.status, beat.missingLockIds, beat.lostLockIds], ['beat', [], []])
  const { load, draining } = await scene.record('pod-1')
  assert.deepEqual([load, draining], ['4', '1'])
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 10_000)
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock')) > 500_000)
  assert.equal((await scene.beat(unranked('plain', 'one'))).status, 'restored')
  assert.ok(await scene.raw.pttl(scene.key('member', 'plain')) > 10_000)
  await assert.rejects(scene.beat(gone), unavailable)
  assert.deepEqual(await scene.record('gone'), {})
})

test('a full server: what removes and what reads still works (G24)', async t => {
  const { scene, fill } = await setFullScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.register('pod-2', 'two')
  await scene.pod.registerLock(writer, heldLock('lock', 'd'), 60_000)
  await scene.bindRaw('d', 'pod-1', 'gone')
  await scene.bindRaw('e', 'pod-1')
  await scene.bindRaw('f', 'pod-1', 'pod-2')
  await scene.raw.sadd(scene.key('members'), 'gone')
  await scene.plain.declareFeatures({ memberIndex: '0' })
  await scene.heard()
  await fill()

  const [read] = await scene.plain.resolve(['d'])
  assert.ok(read && !isCoordinatorError(read))
  assert.deepEqual([read.status, read.dead], ['bound', ['gone']])
  assert.equal((await scene.plain.listMembers()).status, 'page')
  assert.equal((await scene.plain.resolveLock('lock'))?.memberId, 'pod-1')
  assert.deepEqual(await scene.plain.declareFeatures({ memberIndex: '1' }), ['0'])
  assert.equal(await scene.indexed.prune('d'), 1)
  assert.equal(await scene.plain.pruneMembers(['gone', 'pod-1']), 1)
  assert.equal(await scene.indexed.deregisterDestination('e'), 1)
  assert.equal(await scene.indexed.unbind('f', byRegistry('pod-2')), 'unbound')
  assert.equal(await scene.pod.releaseLocks(writer, ['lock']), 1)
  assert.equal(await scene.deregister(writer), 'deregistered')

  assert.deepEqual(await scene.keys(), ['destination:d', 'destination:f', 'features', 'member:pod-2', 'members'])
  assert.deepEqual(await scene.heard(), ['d d', 'd e', 'd f', 'm pod-1 down'])
  assert.equal((await scene.pod.heartbeat(unranked('pod-2', 'other'), memberRecord({ ttlMs: 1000 }), 0, 1000, [])).status, 'superseded')
})

test('a replica: a claim that must write fails the whole call with READONLY, one that must not answers', async t => {
  const master = await startOwnStore(t)
  const scene = await setScriptScene(t, { url: master.url })
  await scene.register('pod-1', 'one')
  await scene.bindRaw('bound', 'pod-1')
  await scene.raw.call('REPLICAOF', '127.0.0.1', '1')

  const [bound, empty] = await scene.plain.claim([
    { destinationId: 'bound', claimOnMiss: true, reassignOrphans: true, memberIds: ['pod-1'] },
    { destinationId: 'new', claimOnMiss: false, reassignOrphans: false, memberIds: [] }
  ])
  assert.deepEqual([bound, empty].map(decision => isCoordinatorError(decision) ? decision.code : decision?.status), ['bound', 'empty'])
  await assert.rejects(scene.claim('new', ['pod-1']), (error: Error) => {
    // The client looks at the error reply itself: `reconnectOnError` is to see it (G26).
    return isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE') && (error.cause as Error).name === 'ReplyError' && /^READONLY/.test((error.cause as Error).message)
  })
  assert.deepEqual(await scene.pods('new'), [])
})
