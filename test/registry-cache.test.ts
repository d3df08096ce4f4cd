import assert from 'node:assert/strict'
import test from 'node:test'
import { ask, block, moveUnheard, setPods } from './support/cache-scene.ts'
import { until } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

test('cache: a binding that was read is answered from memory, whatever the flags, until invalidateCache', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await moveUnheard(scene, 'd', 'pod-2')

  assert.equal(await ask(registry, 'd'), 'pod-1')
  assert.deepEqual(await registry.resolveDestination('d', both), { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
  assert.equal(await registry.invalidateCache('other'), undefined)
  assert.equal(await ask(registry, 'd'), 'pod-1')
  registry.invalidateCache('d')
  assert.equal(await ask(registry, 'd'), 'pod-2')
})

test('cache: an entry ends with its ttl', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 200 } })
  const readAt = performance.now()
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await moveUnheard(scene, 'd', 'pod-2')

  await until(async () => await ask(registry, 'd') === 'pod-2', 'the entry is over')

  assert.ok(performance.now() - readAt >= 200, 'not before its time')
})

test('cache: with max 2 the binding asked for longest ago gives way', async t => {
  const scene = await setPods(t)
  for (const id of ['a', 'b', 'c']) await moveUnheard(scene, id, 'pod-1')
  const registry = scene.registry({ cache: { ttl: 60_000, max: 2 } })
  for (const id of ['a', 'b', 'a', 'c']) assert.equal(await ask(registry, id), 'pod-1')
  for (const id of ['a', 'b', 'c']) await moveUnheard(scene, id, 'pod-2')

  assert.equal(await ask(registry, 'a'), 'pod-1')
  assert.equal(await ask(registry, 'c'), 'pod-1')
  assert.equal(await ask(registry, 'b'), 'pod-2')
})

test('cache: "not found" is not remembered, neither for an unknown id nor for an orphan (G18)', async t => {
  const scene = await setPods(t)
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  for (const id of ['unknown', 'orphan']) {
    assert.equal(await registry.resolveDestination(id), null)
    await moveUnheard(scene, id, 'pod-2')
    assert.equal(await ask(registry, id), 'pod-2')
  }
})

test('cache: an entry does not outlive the records of its pods', async t => {
  const scene = await setPods(t)
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'brief')
  await scene.rawMember('brief')
  await scene.raw.pexpire(scene.key('member', 'brief'), 400)
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  const seen = new Set<string | undefined>()
  for (let i = 0; i < 4; i++) seen.add(await ask(registry, 'd'))

  await until(async () => await scene.raw.exists(scene.key('member', 'brief')) === 0, 'the record expires')
  assert.deepEqual([...seen].sort(), ['brief', 'pod-1'])
  // The clocks of two processes may be a millisecond apart; an entry that outlived the record would stay for a minute.
  await until(async () => new Set([await ask(registry, 'd'), await ask(registry, 'd'), await ask(registry, 'd')]).size === 1, 'the entry is over')
  for (let i = 0; i < 4; i++) assert.equal(await ask(registry, 'd'), 'pod-1')
})

test('cache: an entry is over in the very turn in which an event loop that was blocked goes on', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 2000 } })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await moveUnheard(scene, 'd', 'pod-2')

  const before = ask(registry, 'd')
  block(2500)
  const after = ask(registry, 'd')

  assert.deepEqual([await before, await after], ['pod-1', 'pod-2'])
})

test('cache: an entry is over with its pod’s record in the very turn in which an event loop that was blocked goes on', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  await scene.raw.pexpire(scene.key('member', 'pod-1'), 20_000)
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await moveUnheard(scene, 'd', 'pod-2')
  const clock = performance.now()
  let aheadMs = 0
  t.mock.method(performance, 'now', () => clock + aheadMs)

  // No timer runs in between, as none does while the event loop is blocked.
  const before = ask(registry, 'd')
  aheadMs = 20_001
  const after = ask(registry, 'd')

  assert.deepEqual([await before, await after], ['pod-1', 'pod-2'])
})

test('cache: reassigned and previous go to the one call that replaced the dead pods', async t => {
  const scene = await setPods(t)
  await scene.raw.sadd(scene.key('destination', 'd'), 'dead-1', 'dead-2')
  const registries = [scene.registry(), scene.registry({ cache: false })]

  const racing = await Promise.all(registries.flatMap(registry => Array.from({ length: 50 }, () => registry.resolveDestination('d', both))))
  const later = await Promise.all(registries.map(registry => registry.resolveDestination('d', both)))

  const [owner] = await scene.pods('d')
  const told = racing.filter(each => each?.reassigned)
  assert.deepEqual(told.map(each => ({ ...each, previous: each?.previous?.sort() })), [
    { address: `http://${owner}.test:3000`, memberId: owner, reassigned: true, previous: ['dead-1', 'dead-2'] }
  ])
  for (const each of [...racing.filter(each => !each?.reassigned), ...later]) {
    assert.deepEqual(each, { address: `http://${owner}.test:3000`, memberId: owner, reassigned: false })
  }
})

test('cache: own writes evict on their reply', async t => {
  const scene = await setPods(t)
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  await moveUnheard(scene, 'd', 'pod-1')
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await registry.addPodToDestination('d', 'pod-2')
  assert.deepEqual(new Set([await ask(registry, 'd'), await ask(registry, 'd')]), new Set(['pod-1', 'pod-2']))
  await registry.removePodFromDestination('d', 'pod-1')
  assert.deepEqual([await ask(registry, 'd'), await ask(registry, 'd')], ['pod-2', 'pod-2'])
  await registry.deregisterDestination('d')
  assert.equal(await ask(registry, 'd'), undefined)
})
