import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { diagnosticsChannels } from '../src/index.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }
const deadIds = Array.from({ length: 20_000 }, (_, i) => `dead-${i}`)

async function fill (scene: Scene, key: string): Promise<void> {
  for (let from = 0; from < deadIds.length; from += 1000) await scene.raw.sadd(key, ...deadIds.slice(from, from + 1000))
}

test('20,000 dead ids in members: everything works, all of them are pruned, and no live one (G16)', async t => {
  const scene = setScene(t)
  await fill(scene, scene.key('members'))
  const live = Array.from({ length: 150 }, (_, i) => `pod-${i}`)
  for (const memberId of live) await scene.rawMember(memberId)
  const registry = scene.registry({ storeTimeout: 10_000 })

  assert.deepEqual((await registry.listLiveMembers()).map(member => member.memberId), live.sort())
  assert.ok(live.includes((await registry.resolveDestination('d', both))?.memberId ?? ''))
  assert.ok(live.includes((await registry.pickMember())?.memberId ?? ''))

  await until(async () => await scene.raw.scard(scene.key('members')) === 150, 'the dead are pruned')
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), live)
})

test('20,000 dead ids in members: a pod that registers or comes back while they are pruned stays (G16)', async t => {
  const scene = setScene(t)
  await fill(scene, scene.key('members'))
  const registries = [scene.registry({ storeTimeout: 10_000 }), scene.registry({ storeTimeout: 10_000 })]

  const listing = Promise.all(registries.map(registry => registry.listLiveMembers()))
  const back: string[] = []
  while (back.length < 50) {
    const memberId = `dead-${back.length * 300}`
    await scene.rawMember(memberId)
    back.push(memberId)
  }
  await listing
  await until(async () => await scene.raw.scard(scene.key('members')) <= 50, 'the dead are pruned')

  await Promise.all(registries.map(registry => registry.close()))
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), back.sort())
})

for (const memberIndex of [false, true]) {
  test(`20,000 dead ids in one destination: it is reassigned in one go${memberIndex ? ', with the member index' : ''}, and reported (G16)`, async t => {
    const scene = setScene(t)
    const events: unknown[] = []
    const hear = (event: unknown): void => { if ((event as { keyPrefix: string }).keyPrefix === scene.keyPrefix) events.push(event) }
    subscribe(diagnosticsChannels.oversized, hear)
    t.after(() => unsubscribe(diagnosticsChannels.oversized, hear))
    await fill(scene, scene.key('destination', 'd'))
    await scene.raw.sadd(scene.key('owned', 'dead-19999'), 'd', 'other')
    await scene.liveMember('pod-1', { memberIndex })
    const registry = scene.registry({ memberIndex, storeTimeout: 10_000 })

    assert.equal(await registry.resolveDestination('d'), null)
    assert.equal((await registry.readBinding('d')).length, 20_000)
    const resolved = await registry.resolveDestination('d', both)

    const { previous, ...rest } = resolved ?? {}
    assert.deepEqual(rest, { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: true })
    assert.deepEqual(previous?.sort(), [...deadIds].sort())
    assert.deepEqual(await scene.pods('d'), ['pod-1'])
    assert.deepEqual((await scene.raw.smembers(scene.key('owned', 'dead-19999'))).sort(), memberIndex ? ['other'] : ['d', 'other'])
    assert.deepEqual(events[0], { keyPrefix: scene.keyPrefix, destinationId: 'd', count: 20_000 })
  })

  test(`20,000 dead ids in one destination beside live ones: the dead are pruned, the live stay${memberIndex ? ', with the member index' : ''} (G16)`, async t => {
    const scene = setScene(t)
    await fill(scene, scene.key('destination', 'd'))
    for (const memberId of ['pod-1', 'pod-2']) await scene.liveMember(memberId, { memberIndex })
    const registry = scene.registry({ memberIndex, storeTimeout: 10_000, cache: false })
    await registry.addPodToDestination('d', 'pod-1')
    await registry.addPodToDestination('d', 'pod-2')

    assert.match((await registry.resolveDestination('d', both))?.memberId ?? '', /^pod-[12]$/)

    await until(async () => await scene.raw.scard(scene.key('destination', 'd')) === 2, 'the dead are pruned')
    assert.deepEqual(await scene.pods('d'), ['pod-1', 'pod-2'])
  })
}

test('20,000 dead ids in one destination: it is deregistered in one go (G16)', async t => {
  const scene = setScene(t)
  await fill(scene, scene.key('destination', 'd'))
  const registry = scene.registry({ memberIndex: true, storeTimeout: 10_000 })
  assert.equal(await registry.removePodFromDestination('d', 'dead-7'), true)
  assert.equal(await registry.deregisterDestination('d'), true)
  assert.equal(await registry.hasBinding('d'), false)
})
