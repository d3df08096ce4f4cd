import assert from 'node:assert/strict'
import test from 'node:test'
import type { Registry } from '../src/index.ts'
import { setScene } from './support/store.ts'
import type { Scene } from './support/store.ts'

const claim = { claimOnMiss: true }

/** How many of the destinations each pod has. */
async function countByPod (scene: Scene, destinationIds: string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const destinationId of destinationIds) {
    const pods = await scene.pods(destinationId)
    assert.equal(pods.length, 1, destinationId)
    counts.set(pods[0] as string, (counts.get(pods[0] as string) ?? 0) + 1)
  }
  return counts
}

/** 1,000 claims by 4 registries, each with 25 under way at a time. */
async function claimThousand (registries: Registry[]): Promise<string[]> {
  const destinationIds: string[] = []
  await Promise.all(registries.map(registry => registry.listLiveMembers()))
  await Promise.all(registries.map(async (registry, r) => {
    for (let i = 0; i < 10; i++) {
      const ids = Array.from({ length: 25 }, (_, j) => `d-${r}-${i}-${j}`)
      destinationIds.push(...ids)
      await Promise.all(ids.map(id => registry.resolveDestination(id, claim)))
    }
  }))
  return destinationIds
}

// One fresh pod takes 50 and then all share: (99 x 50 + 1,000) / 100.
const perfectLevel = 59.5

function assertLevel (counts: Map<string, number>): void {
  for (let i = 0; i < 100; i++) {
    const level = (i === 0 ? 0 : 50) + (counts.get(`pod-${i}`) ?? 0)
    assert.ok(level <= perfectLevel * 1.1, `pod-${i} is at ${level}`)
  }
}

test('placement: 1,000 claims of 4 registries between two heartbeats leave no pod above 1.1 x the level of a perfect placement', async t => {
  const scene = setScene(t)
  const pods = Array.from({ length: 100 }, (_, i) => scene.member(`pod-${i}`, { redis: scene.raw, ttl: 600, getLoad: () => i === 0 ? 0 : 50 }))
  await Promise.all(pods.map(pod => pod.register()))
  const registries = Array.from({ length: 4 }, () => scene.registry({ strategy: 'least-loaded' }))

  const destinationIds = await claimThousand(registries)

  const counts = await countByPod(scene, destinationIds)
  assertLevel(counts)
  for (const [memberId, count] of counts) assert.equal(await scene.raw.hget(scene.key('member', memberId), 'pending'), String(count))
})

test('placement: the same with pods whose records were written with plain commands', async t => {
  const scene = setScene(t)
  await Promise.all(Array.from({ length: 100 }, (_, i) => scene.rawMember(`pod-${i}`, { load: i === 0 ? 0 : 50 }, 600)))
  const registries = Array.from({ length: 4 }, () => scene.registry({ strategy: 'least-loaded' }))

  const destinationIds = await claimThousand(registries)

  assertLevel(await countByPod(scene, destinationIds))
})

test('placement: 50 claims at loads 0.9 and 0.1 with loadPerBinding 0.01 all go to the second pod (G11)', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { getLoad: () => 0.9, loadPerBinding: 0.01 })
  await scene.liveMember('pod-2', { getLoad: () => 0.1, loadPerBinding: 0.01 })
  const registry = scene.registry({ strategy: 'least-loaded' })
  const destinationIds = Array.from({ length: 50 }, (_, i) => `d${i}`)

  await Promise.all(destinationIds.map(id => registry.resolveDestination(id, claim)))

  assert.deepEqual(await countByPod(scene, destinationIds), new Map([['pod-2', 50]]))
  const pending = Number(await scene.raw.hget(scene.key('member', 'pod-2'), 'pending'))
  assert.ok(Math.abs(pending - 0.5) < 1e-9, `pending is ${pending}`)
})

test('placement: what was bound counts until the heartbeat after the next, and not twice', async t => {
  const scene = setScene(t)
  let load = 0
  const busy = await scene.liveMember('pod-1', { getLoad: () => load })
  await scene.liveMember('pod-2', { getLoad: () => 5.5 })
  const registry = scene.registry({ strategy: 'least-loaded' })
  const place = async (name: string, count: number): Promise<Record<string, number>> => {
    const ids = Array.from({ length: count }, (_, i) => `${name}-${i}`)
    for (const id of ids) await registry.resolveDestination(id, claim)
    return Object.fromEntries(await countByPod(scene, ids))
  }

  assert.deepEqual(await place('first', 6), { 'pod-1': 6 })
  load = 6 // the pod counts them
  await busy.heartbeat()
  await busy.heartbeat()

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'), '0')
  assert.deepEqual(await place('second', 2), { 'pod-2': 1, 'pod-1': 1 })
})

for (const strategy of ['round-robin', 'least-loaded'] as const) {
  test(`placement: 30 claims with ${strategy} on 3 equal pods give each 10, one after the other and at once`, async t => {
    const scene = setScene(t)
    for (const memberId of ['pod-1', 'pod-2', 'pod-3']) await scene.liveMember(memberId)
    const registry = scene.registry({ strategy })
    await registry.listLiveMembers()
    const even = new Map([['pod-1', 10], ['pod-2', 10], ['pod-3', 10]])

    const inTurn = Array.from({ length: 30 }, (_, i) => `in-turn-${i}`)
    for (const id of inTurn) await registry.resolveDestination(id, claim)
    assert.deepEqual(new Map([...await countByPod(scene, inTurn)].sort()), even)

    const atOnce = Array.from({ length: 30 }, (_, i) => `at-once-${i}`)
    await Promise.all(atOnce.map(id => registry.resolveDestination(id, claim)))
    assert.deepEqual(new Map([...await countByPod(scene, atOnce)].sort()), even)
  })
}

test('placement: misses of bound ids between the claims leave round-robin even', async t => {
  const scene = setScene(t)
  for (const memberId of ['pod-1', 'pod-2']) await scene.liveMember(memberId)
  await scene.raw.sadd(scene.key('destination', 'bound'), 'pod-1')
  const registry = scene.registry({ cache: false })
  const destinationIds: string[] = []
  for (let i = 0; i < 40; i++) {
    await registry.resolveDestination('bound', claim)
    if (i % 3 === 0) await Promise.all([registry.resolveDestination('bound', claim), registry.resolveDestination('bound')])
    destinationIds.push(`d${i}`)
    await registry.resolveDestination(`d${i}`, claim)
    await registry.resolveDestination('unknown')
  }
  assert.deepEqual(new Map([...await countByPod(scene, destinationIds)].sort()), new Map([['pod-1', 20], ['pod-2', 20]]))
})

for (const cache of [undefined, false] as const) {
  test(`placement: a destination on 3 pods is spread over all by 30 resolves, cache ${cache ?? 'on'} (G17)`, async t => {
    const scene = setScene(t)
    for (const memberId of ['pod-1', 'pod-2', 'pod-3']) await scene.liveMember(memberId)
    await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'pod-2', 'pod-3')
    const registry = scene.registry({ cache })
    const counts: Record<string, number> = {}
    for (let i = 0; i < 30; i++) {
      const { memberId = '' } = await registry.resolveDestination('d') ?? {}
      counts[memberId] = (counts[memberId] ?? 0) + 1
    }
    assert.deepEqual(counts, { 'pod-1': 10, 'pod-2': 10, 'pod-3': 10 })
  })

  test(`placement: two destinations asked for in alternation, on two pods each, are both spread, cache ${cache ?? 'on'} (G17)`, async t => {
    const scene = setScene(t)
    for (const memberId of ['pod-1', 'pod-2', 'pod-3', 'pod-4']) await scene.liveMember(memberId)
    await scene.raw.sadd(scene.key('destination', 'a'), 'pod-1', 'pod-2')
    await scene.raw.sadd(scene.key('destination', 'b'), 'pod-3', 'pod-4')
    const registry = scene.registry({ cache })
    const counts: Record<string, number> = {}
    for (let i = 0; i < 40; i++) {
      const { memberId = '' } = await registry.resolveDestination(i % 2 === 0 ? 'a' : 'b', claim) ?? {}
      counts[memberId] = (counts[memberId] ?? 0) + 1
    }
    assert.deepEqual(counts, { 'pod-1': 10, 'pod-2': 10, 'pod-3': 10, 'pod-4': 10 })
  })
}

test('placement: random reaches every pod, on first touch and on fan-out', async t => {
  const scene = setScene(t)
  const memberIds = ['pod-1', 'pod-2', 'pod-3']
  for (const memberId of memberIds) await scene.liveMember(memberId)
  await scene.raw.sadd(scene.key('destination', 'wide'), ...memberIds)
  const registry = scene.registry({ strategy: 'random' })
  const claimed = new Set<string>()
  const routed = new Set<string>()
  // All of 120 missing one of three: 3 x (2/3)^120.
  for (let i = 0; i < 120; i++) {
    claimed.add((await registry.resolveDestination(`d${i}`, claim))?.memberId ?? '')
    routed.add((await registry.resolveDestination('wide'))?.memberId ?? '')
  }
  assert.deepEqual([...claimed].sort(), memberIds)
  assert.deepEqual([...routed].sort(), memberIds)
})

test('placement: least-loaded sends a fanned-out destination to its idlest pod', async t => {
  const scene = setScene(t)
  for (const [memberId, load] of [['pod-1', 5], ['pod-2', 0.5], ['pod-3', NaN]] as const) await scene.liveMember(memberId, { getLoad: () => load })
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'pod-2', 'pod-3')
  const registry = scene.registry({ strategy: 'least-loaded' })
  for (let i = 0; i < 5; i++) assert.equal((await registry.resolveDestination('d'))?.memberId, 'pod-2')
})
