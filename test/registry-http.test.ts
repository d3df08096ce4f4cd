import assert from 'node:assert/strict'
import test from 'node:test'
import type { AllocationStrategy } from '../src/index.ts'
import { countSceneCommands, setScene, until } from './support/store.ts'

const first: AllocationStrategy = { pick: candidates => candidates[0] ?? null }

test('reportUnreachable: the destination is read anew, without a round trip of the report itself', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  await scene.raw.sadd(scene.key('destination', 'x'), 'pod-1')
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-1')
  await scene.raw.del(scene.key('destination', 'x'))
  await scene.raw.sadd(scene.key('destination', 'x'), 'pod-2')
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-1', 'it is cached')

  assert.equal(registry.reportUnreachable('pod-1', 'x'), undefined)
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-2')
})

test('reportUnreachable: without a destination nothing is evicted, but the pod is suspect', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ cache: { ttl: 60_000 }, strategy: first, suspectTime: 60_000 })
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  await scene.raw.sadd(scene.key('destination', 'x'), 'pod-1', 'pod-2')
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-1')
  registry.reportUnreachable('pod-1')
  await scene.raw.del(scene.key('destination', 'x'))
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-2', 'from the cache, past the suspect')
})

test('reportUnreachable: a suspect is passed over by picks, first touches and fan-out, in this registry alone', async t => {
  const scene = setScene(t)
  const [registry, other] = [scene.registry({ strategy: first, suspectTime: 60_000 }), scene.registry({ strategy: first })]
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  await scene.raw.sadd(scene.key('destination', 'both'), 'pod-1', 'pod-2')
  registry.reportUnreachable('pod-1', 'both')
  assert.equal((await registry.pickMember())?.memberId, 'pod-2')
  assert.equal((await registry.resolveDestination('new', { claimOnMiss: true }))?.memberId, 'pod-2')
  for (let count = 0; count < 5; count++) assert.equal((await registry.resolveDestination('both'))?.memberId, 'pod-2')
  assert.deepEqual(await scene.pods('new'), ['pod-2'])
  assert.deepEqual(await scene.pods('both'), ['pod-1', 'pod-2'], 'it stays bound')
  assert.deepEqual((await registry.listLiveMembers()).map(({ memberId }) => memberId), ['pod-1', 'pod-2'], 'it is live')
  assert.equal((await other.pickMember())?.memberId, 'pod-1')
  assert.equal((await other.resolveDestination('both'))?.memberId, 'pod-1')
})

test('reportUnreachable: built-in strategies pass suspects over too', async t => {
  for (const strategy of ['round-robin', 'least-loaded', 'random'] as const) {
    const scene = setScene(t)
    const registry = scene.registry({ strategy, suspectTime: 60_000 })
    await scene.rawMember('idle', { load: 0 })
    await scene.rawMember('busy', { load: 100 })
    registry.reportUnreachable('idle')
    for (let count = 0; count < 6; count++) {
      assert.equal((await registry.pickMember())?.memberId, 'busy', strategy)
      assert.equal((await registry.resolveDestination(`x${count}`, { claimOnMiss: true }))?.memberId, 'busy', strategy)
    }
  }
})

test('reportUnreachable: a sole owner, or the only live pod, is still given; nothing is reassigned on suspicion', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ suspectTime: 60_000 })
  await scene.rawMember('owner')
  await scene.raw.sadd(scene.key('destination', 'x'), 'owner')
  registry.reportUnreachable('owner', 'x')
  assert.equal((await registry.pickMember())?.memberId, 'owner')
  assert.equal((await registry.resolveDestination('new', { claimOnMiss: true }))?.memberId, 'owner')
  await scene.rawMember('other')
  const resolved = await registry.resolveDestination('x', { claimOnMiss: true, reassignOrphans: true })
  assert.deepEqual([resolved?.memberId, resolved?.reassigned], ['owner', false])
  assert.deepEqual(await scene.pods('x'), ['owner'])
})

test('reportUnreachable: an orphan whose only candidates are suspect is reassigned to one of them', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ suspectTime: 60_000 })
  await scene.rawMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'x'), 'dead')
  registry.reportUnreachable('pod-1')
  assert.deepEqual(await registry.resolveDestination('x', { reassignOrphans: true }), { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: true, previous: ['dead'] })
})

test('suspectTime: suspicion ends after it; with 0 there is none', async t => {
  const scene = setScene(t)
  const [short, none] = [scene.registry({ strategy: first, suspectTime: 300 }), scene.registry({ strategy: first, suspectTime: 0 })]
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  none.reportUnreachable('pod-1')
  assert.equal((await none.pickMember())?.memberId, 'pod-1')
  const before = performance.now()
  short.reportUnreachable('pod-1')
  await until(async () => (await short.pickMember())?.memberId === 'pod-1', 'it is trusted again', 5000)
  assert.ok(performance.now() - before >= 299)
})

test('suspectTime: what is no number of milliseconds is refused', t => {
  const scene = setScene(t)
  for (const suspectTime of [-1, Number.NaN, Infinity, '1000', null]) {
    assert.throws(() => scene.registry({ suspectTime: suspectTime as number }), { code: 'PLT_COORDINATOR_INVALID_OPTION', message: /suspectTime/ })
  }
})

test('bindPod: it says whether the pod was bound, was there already, was refused, or the id is taken', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  await scene.rawMember('draining', { draining: '1' })
  assert.equal(await registry.bindPod('x', 'pod-1'), 'bound')
  assert.equal(await registry.bindPod('x', 'pod-1'), 'present')
  assert.equal(await registry.bindPod('x', 'pod-1', { ifBound: 'refuse' }), 'present')
  assert.equal(await registry.bindPod('x', 'pod-2', { ifBound: 'refuse' }), 'taken')
  assert.deepEqual(await scene.pods('x'), ['pod-1'])
  assert.equal(await registry.bindPod('x', 'pod-2', { ifBound: 'add' }), 'bound')
  assert.equal(await registry.bindPod('x', 'draining'), 'refused')
  assert.equal(await registry.bindPod('x', 'dead'), 'refused')
  assert.deepEqual(await scene.pods('x'), ['pod-1', 'pod-2'])
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead')
  assert.equal(await registry.bindPod('orphan', 'pod-1', { ifBound: 'refuse' }), 'taken', 'a dead pod holds it too')
})

test('bindPod: of 50 racing for one id with ifBound refuse, one pod is bound', async t => {
  const scene = setScene(t)
  const registries = [scene.registry(), scene.registry()]
  const memberIds = Array.from({ length: 50 }, (_, at) => `pod-${at}`)
  await Promise.all(memberIds.map(memberId => scene.rawMember(memberId)))
  const statuses = await Promise.all(memberIds.map((memberId, at) => registries[at % 2]?.bindPod('x', memberId, { ifBound: 'refuse' })))
  assert.equal(statuses.filter(status => status === 'bound').length, 1)
  assert.equal(statuses.filter(status => status === 'taken').length, 49)
  assert.equal((await scene.pods('x')).length, 1)
})

test('bindPod: the next resolve sees the pod at once, and one command does it', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  await scene.rawMember('pod-1')
  await scene.rawMember('pod-2')
  await registry.bindPod('x', 'pod-1')
  assert.equal((await registry.resolveDestination('x'))?.memberId, 'pod-1')
  const counts = await countSceneCommands(scene, () => registry.bindPod('x', 'pod-2'))
  assert.equal(counts.evalsha, 1)
  const picked = new Set<string | undefined>()
  for (let count = 0; count < 4; count++) picked.add((await registry.resolveDestination('x'))?.memberId)
  assert.deepEqual([...picked].sort(), ['pod-1', 'pod-2'])
})

test('deregisterDestination ifHolds: it forgets the destination only while the pod is one of its pods', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ memberIndex: true })
  await scene.rawMember('pod-1')
  await registry.addPodToDestination('x', 'pod-1')
  assert.equal(await registry.deregisterDestination('x', { ifHolds: 'pod-2' }), false)
  assert.deepEqual([await scene.pods('x'), await registry.listOwned('pod-1')], [['pod-1'], ['x']])
  assert.equal(await registry.deregisterDestination('x', { ifHolds: 'pod-1' }), true)
  assert.deepEqual([await scene.pods('x'), await registry.listOwned('pod-1')], [[], []])
  assert.equal(await registry.deregisterDestination('x', { ifHolds: 'pod-1' }), false)
})

test('deregisterDestination ifOrphaned: it forgets the destination only when all its pods are dead', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  await scene.rawMember('live')
  await scene.rawMember('draining', { draining: '1' })
  await scene.raw.sadd(scene.key('destination', 'x'), 'dead-1', 'live')
  await scene.raw.sadd(scene.key('destination', 'draining'), 'draining')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1', 'dead-2')
  assert.equal(await registry.deregisterDestination('x', { ifOrphaned: true }), false)
  assert.equal(await registry.deregisterDestination('draining', { ifOrphaned: true }), false)
  assert.equal(await registry.deregisterDestination('orphan', { ifOrphaned: true }), true)
  assert.equal(await registry.deregisterDestination('none', { ifOrphaned: true }), false)
  assert.deepEqual([await scene.pods('x'), await scene.pods('draining'), await scene.pods('orphan')], [['dead-1', 'live'], ['draining'], []])
})

test('deregisterDestination: both conditions have to hold when both are given', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  await scene.rawMember('live')
  await scene.raw.sadd(scene.key('destination', 'x'), 'live')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  assert.equal(await registry.deregisterDestination('x', { ifHolds: 'live', ifOrphaned: true }), false)
  assert.equal(await registry.deregisterDestination('orphan', { ifHolds: 'dead-2', ifOrphaned: true }), false)
  assert.deepEqual([await scene.pods('x'), await scene.pods('orphan')], [['live'], ['dead-1']])
})
