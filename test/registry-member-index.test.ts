import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import { setScene } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

/** I4: each owned set equals the destinations whose set holds the pod, and there are no others. */
async function assertIndexExact (scene: Scene): Promise<void> {
  const expected = new Map<string, string[]>()
  const found = new Map<string, string[]>()
  for (const key of await scene.keys()) {
    if (key.startsWith('destination:')) {
      const destinationId = key.slice('destination:'.length)
      for (const memberId of await scene.pods(destinationId)) expected.set(memberId, [...expected.get(memberId) ?? [], destinationId].sort())
    } else if (key.startsWith('owned:')) {
      const memberId = key.slice('owned:'.length)
      found.set(memberId, (await scene.raw.smembers(scene.key('owned', memberId))).sort())
    }
  }
  assert.deepEqual([...found].sort(), [...expected].sort())
}

test('memberIndex: every operation of a registry keeps the owned sets exact', async t => {
  const scene = setScene(t)
  for (const memberId of ['pod-1', 'pod-2']) await scene.liveMember(memberId, { memberIndex: true })
  const registry = scene.registry({ memberIndex: true, strategy: 'round-robin' })

  for (let i = 0; i < 4; i++) await registry.resolveDestination(`d${i}`, both)
  await assertIndexExact(scene)
  assert.equal((await registry.listOwned('pod-1')).length, 2)

  await registry.addPodToDestination('d0', 'pod-1')
  await registry.addPodToDestination('d0', 'pod-2')
  await registry.addPodToDestination('d0', 'pod-2')
  await assertIndexExact(scene)
  assert.ok((await registry.listOwned('pod-2')).includes('d0'))

  await registry.removePodFromDestination('d0', 'pod-1')
  await registry.deregisterDestination('d1')
  await assertIndexExact(scene)

  // pod-1 dies: what it had alone is reassigned, where it had company it is pruned.
  await registry.addPodToDestination('shared', 'pod-1')
  await registry.addPodToDestination('shared', 'pod-2')
  const orphaned = (await registry.listOwned('pod-1')).filter(destinationId => destinationId !== 'shared')
  assert.ok(orphaned.length > 0)
  await scene.raw.del(scene.key('member', 'pod-1'))
  for (const destinationId of [...orphaned, 'shared']) {
    registry.invalidateCache(destinationId)
    assert.equal((await registry.resolveDestination(destinationId, both))?.memberId, 'pod-2')
  }
  const second = scene.registry({ memberIndex: true })
  await registry.close()
  await assertIndexExact(scene)
  assert.deepEqual(await second.listOwned('pod-1'), [])
  assert.deepEqual((await second.listOwned('pod-2')).sort(), ['d0', 'd2', 'd3', 'shared'])
})

test('memberIndex: two registries that race keep the owned sets exact', async t => {
  const scene = setScene(t)
  for (let i = 1; i <= 4; i++) await scene.liveMember(`pod-${i}`, { memberIndex: true })
  const registries = [scene.registry({ memberIndex: true, cache: false }), scene.registry({ memberIndex: true, cache: false })]
  await Promise.all(registries.map(registry => registry.listLiveMembers()))

  const calls: Promise<unknown>[] = []
  for (let i = 0; i < 50; i++) {
    const destinationId = `d${i % 5}`
    const memberId = `pod-${i % 4 + 1}`
    for (const registry of registries) {
      calls.push(registry.resolveDestination(destinationId, both), registry.addPodToDestination(destinationId, memberId))
      calls.push(registry.removePodFromDestination(destinationId, `pod-${(i + 1) % 4 + 1}`))
      if (i % 10 === 0) calls.push(registry.deregisterDestination(destinationId))
    }
  }
  await Promise.all(calls)

  await assertIndexExact(scene)
})

test('memberIndex: without it no owned set is written, and listOwned rejects with a code', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()
  await registry.resolveDestination('d', both)
  await registry.addPodToDestination('e', 'pod-1')

  await assert.rejects(registry.listOwned('pod-1'), error => isCoordinatorError(error, 'PLT_COORDINATOR_MEMBER_INDEX_OFF'))
  assert.deepEqual(await scene.keys(), ['destination:d', 'destination:e', 'features', 'member:pod-1', 'members'])
})

test('listOwned: 5,000 destinations of one pod come whole, each once', async t => {
  const scene = setScene(t)
  const destinationIds = Array.from({ length: 5000 }, (_, i) => `d${i}`)
  await scene.raw.sadd(scene.key('owned', 'pod-1'), ...destinationIds)
  const registry = scene.registry({ memberIndex: true })

  assert.deepEqual((await registry.listOwned('pod-1')).sort(), destinationIds.sort())
  assert.deepEqual(await registry.listOwned('pod-2'), [])
})

test('features: a registry that keeps the member index differently reports it, and is refused with strictFeatures', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { memberIndex: true })
  const reported: string[] = []
  const loose = scene.registry({ onError: error => { reported.push(error.code) } })
  const strict = scene.registry({ strictFeatures: true })
  const agreeing = scene.registry({ strictFeatures: true, memberIndex: true })
  const isMismatch = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_FEATURE_MISMATCH')

  assert.equal((await loose.resolveDestination('d', both))?.memberId, 'pod-1')
  await loose.close()
  assert.deepEqual(reported, ['PLT_COORDINATOR_FEATURE_MISMATCH'])
  for (let i = 0; i < 2; i++) await assert.rejects(strict.resolveDestination('e', both), isMismatch)
  await assert.rejects(strict.addPodToDestination('e', 'pod-1'), isMismatch)
  await assert.rejects(strict.listLiveMembers(), isMismatch)
  assert.equal(await scene.raw.exists(scene.key('destination', 'e')), 0)
  assert.equal((await agreeing.resolveDestination('e', both))?.memberId, 'pod-1')
  assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '1' })
})

test('features: the first registry of a prefix records them, with its first call and not before', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ memberIndex: true, strictFeatures: true })
  await assert.rejects(registry.hasBinding(''))
  assert.deepEqual(await scene.keys(), [])

  await registry.hasBinding('d')

  assert.deepEqual(await scene.keys(), ['features'])
  assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '1' })
})
