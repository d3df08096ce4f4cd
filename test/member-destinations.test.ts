import assert from 'node:assert/strict'
import test from 'node:test'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

async function pending (scene: Scene, memberId = 'pod-1'): Promise<number> {
  return Number(await scene.raw.hget(scene.key('member', memberId), 'pending'))
}

test('addToDestination: true binds the pod, again too, and others beside it stay', async t => {
  const scene = setScene(t)
  const first = await scene.liveMember('pod-1')
  const second = await scene.liveMember('pod-2')

  assert.equal(await first.addToDestination('tenant-1'), true)
  assert.equal(await second.addToDestination('tenant-1'), true)
  assert.equal(await second.addToDestination('tenant-1'), true)

  assert.equal(await scene.raw.type(scene.key('destination', 'tenant-1')), 'set')
  assert.equal(await scene.raw.ttl(scene.key('destination', 'tenant-1')), -1)
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1', 'pod-2'])
  assert.equal(await pending(scene, 'pod-2'), 1, 'what was bound already adds nothing')
})

test('addToDestination: false without a live record of its own, and nothing is bound', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { memberIndex: true })
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal(await member.addToDestination('tenant-1'), false)
  assert.equal(await scene.member('pod-2', { memberIndex: true }).addToDestination('tenant-1'), false)
  assert.deepEqual(await scene.keys(), ['features', 'members'])

  await scene.rawMember('pod-1')
  assert.equal(await member.addToDestination('tenant-1'), true, 'a record written with plain commands is a full pod')
  assert.deepEqual(await member.listOwned(), ['tenant-1'])
})

test('removeFromDestination: true when it was bound, dead or alive, else false', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.addToDestination('tenant-1')
  await member.addToDestination('tenant-2')
  assert.equal(await member.removeFromDestination('tenant-1'), true)
  assert.equal(await member.removeFromDestination('tenant-1'), false)

  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal(await member.removeFromDestination('tenant-2'), true)

  assert.deepEqual(await scene.keys(), ['features', 'members'])
})

test('removeFromDestination: a draining pod gives up what it holds', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.addToDestination('tenant-1')
  await member.setDraining(true)
  assert.equal(await member.removeFromDestination('tenant-1'), true)
  assert.deepEqual(await scene.pods('tenant-1'), [])
})

test('listOwned: is exact over every operation of members and registries', async t => {
  const scene = setScene(t)
  const options = { memberIndex: true }
  const first = await scene.liveMember('pod-1', options)
  const second = await scene.liveMember('pod-2', options)
  const registry = scene.registry({ ...options, cache: false })
  const owned = async (): Promise<string[][]> => [(await first.listOwned()).sort(), (await second.listOwned()).sort()]
  assert.equal(await scene.raw.exists(scene.key('owned', 'pod-1')), 0)

  await first.addToDestination('a')
  await second.addToDestination('a')
  await registry.addPodToDestination('b', 'pod-1')
  assert.deepEqual(await owned(), [['a', 'b'], ['a']])
  assert.equal(await scene.raw.type(scene.key('owned', 'pod-1')), 'set')

  await second.setDraining(true)
  await registry.resolveDestination('c', { claimOnMiss: true })
  await first.removeFromDestination('b')
  assert.deepEqual(await owned(), [['a', 'c'], ['a']])

  await second.setDraining(false)
  await first.deregister()
  await registry.resolveDestination('c', { reassignOrphans: true })
  await registry.resolveDestination('a')
  await until(async () => (await scene.pods('a')).length === 1, 'the dead pod is pruned')
  assert.deepEqual(await registry.listOwned('pod-1'), [])
  assert.deepEqual((await registry.listOwned('pod-2')).sort(), ['a', 'c'])

  await registry.deregisterDestination('a')
  await registry.removePodFromDestination('c', 'pod-2')
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-2', 'members'])
})

test('listOwned: lists 2,500 destinations each once', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { memberIndex: true })
  const ids = Array.from({ length: 2500 }, (_, at) => `tenant-${at}`)
  await Promise.all(ids.map(id => member.addToDestination(id)))
  assert.deepEqual((await member.listOwned()).sort(), ids.sort())
})

test('listOwned: a pod that woke after its destinations moved finds out by it (G38)', async t => {
  const scene = setScene(t)
  const options = { memberIndex: true }
  const sleeper = await scene.liveMember('pod-1', options)
  await sleeper.addToDestination('tenant-1')
  await sleeper.addToDestination('tenant-2')
  await scene.liveMember('pod-2', options)
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.registry(options).resolveDestination('tenant-1', { reassignOrphans: true })

  assert.equal(await sleeper.heartbeat(), true)

  assert.deepEqual(await sleeper.listOwned(), ['tenant-2'])
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-2'], 'a beat takes no binding back (G39)')
})

test('pending: a fresh binding counts for at least one interval of beats, whoever bound it', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { loadPerBinding: 0.25 })
  const registry = scene.registry()
  assert.equal(await member.heartbeat(), true)

  await member.addToDestination('a')
  await registry.addPodToDestination('b', 'pod-1')
  await registry.resolveDestination('c', { claimOnMiss: true })
  assert.equal(await pending(scene), 0.75)

  await member.heartbeat()
  assert.equal(await pending(scene), 0.75, 'its load was perhaps read before they were bound')
  await member.addToDestination('d')
  await member.heartbeat()
  assert.equal(await pending(scene), 0.25)
  await member.heartbeat()
  assert.equal(await pending(scene), 0)
})

test('pending: setDraining(), unbinding and binding again neither drop nor double it', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.addToDestination('a')
  await member.setDraining(true)
  await member.setDraining(false)
  await member.addToDestination('a')
  assert.equal(await pending(scene), 1)
  await member.heartbeat()
  await member.setDraining(false)
  assert.equal(await pending(scene), 1)
  await member.heartbeat()
  assert.equal(await pending(scene), 0)
})

test('pending: sums of fractions end at exactly zero', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { loadPerBinding: 0.1 })
  for (let round = 0; round < 3; round++) {
    await Promise.all(Array.from({ length: 7 }, (_, at) => member.addToDestination(`${round} ${at}`)))
    await member.heartbeat()
  }
  await member.heartbeat()
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'), '0')
})

test('listPeerLoad: lists all live pods by memberId, its own, draining and plain ones too, and prunes the dead', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-2', { getLoad: () => 1.5 })
  await (await scene.liveMember('pod-3')).setDraining(true)
  await scene.rawMember('pod-1', { load: 7 })
  await scene.raw.sadd(scene.key('members'), 'pod-dead', 'pod-0')

  assert.deepEqual(await member.listPeerLoad(), [
    { memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 7, draining: false },
    { memberId: 'pod-2', address: 'http://pod-2.test:3000', load: 1.5, draining: false },
    { memberId: 'pod-3', address: 'http://pod-3.test:3000', load: 0, draining: true }
  ])
  await until(async () => await scene.raw.scard(scene.key('members')) === 3, 'the dead are pruned')
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['pod-1', 'pod-2', 'pod-3'])
})

test('listPeerLoad: works before register() and on an empty prefix', async t => {
  const scene = setScene(t)
  assert.deepEqual(await scene.member('pod-1').listPeerLoad(), [])
})
