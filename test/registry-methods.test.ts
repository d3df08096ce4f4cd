import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import { setScene } from './support/store.ts'

const live = (memberId: string, load = 0, draining = false): object => ({ memberId, address: `http://${memberId}.test:3000`, load, draining })

test('listLiveMembers: the live pods come sorted, draining ones marked, with their published loads', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-b', { getLoad: () => 0.25 })
  await scene.liveMember('pod-c', { getLoad: () => NaN })
  const draining = await scene.liveMember('pod-a', { getLoad: () => 7 })
  await draining.setDraining(true)
  await scene.raw.sadd(scene.key('members'), 'dead-1')
  const registry = scene.registry()

  const members = await registry.listLiveMembers()

  assert.deepEqual(members, [live('pod-a', 7, true), live('pod-b', 0.25), live('pod-c', NaN)])
  await registry.close()
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['pod-a', 'pod-b', 'pod-c'])
})

test('listLiveMembers: of no pods it is an empty list, and each call reads again', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  assert.deepEqual(await registry.listLiveMembers(), [])
  const member = await scene.liveMember('pod-1')
  assert.deepEqual(await registry.listLiveMembers(), [live('pod-1')])
  await member.setDraining(true)
  assert.deepEqual(await registry.listLiveMembers(), [live('pod-1', 0, true)])
  await member.deregister()
  assert.deepEqual(await registry.listLiveMembers(), [])
})

test('listLiveMembers, pickMember, resolveDestination, readBinding: what they return is fresh, a caller that changes it changes nothing else', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()
  const flags = { claimOnMiss: true }
  const resolved = { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false }

  for (let round = 0; round < 2; round++) {
    for (const member of [...await registry.listLiveMembers(), await registry.pickMember()]) {
      assert.deepEqual(member, live('pod-1'))
      Object.assign(member, { memberId: 'stranger', address: 'http://evil.test', load: NaN, draining: true })
    }
    const both = await Promise.all([registry.resolveDestination('d', flags), registry.resolveDestination('d', flags)])
    for (const each of [...both, await registry.resolveDestination('d', flags)]) {
      assert.deepEqual(each, resolved)
      Object.assign(each as object, { memberId: 'stranger', address: 'http://evil.test', reassigned: true })
    }
    assert.notEqual(both[0], both[1])
    const [pod] = await registry.readBinding('d')
    Object.assign(pod?.member as object, { address: 'http://evil.test' })
    registry.invalidateCache('other')
  }
  assert.deepEqual(await registry.resolveDestination(`other-${scene.keyPrefix}`, flags), resolved)
})

test('pickMember: one live pod that is not draining is chosen, and nothing is bound', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  assert.equal(await registry.pickMember(), null)
  const member = await scene.liveMember('pod-1')
  await member.setDraining(true)
  assert.equal(await registry.pickMember({ destinationId: 'd' }), null)
  await scene.liveMember('pod-2', { getLoad: () => 3 })

  assert.deepEqual(await registry.pickMember({ destinationId: 'd' }), live('pod-2', 3))
  assert.deepEqual(await registry.pickMember(), live('pod-2', 3))

  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'member:pod-2', 'members'])
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-2'), 'pending'), '0')
})

test('pickMember: a strategy hears of the destination only when there is one', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const heard: object[] = []
  const registry = scene.registry({ strategy: { pick: (candidates, ctx) => { heard.push(ctx); return candidates[0] } } })

  await registry.pickMember({ destinationId: 'd' })
  await registry.pickMember({})

  assert.equal(heard.length, 2)
  assert.equal((heard[0] as { destinationId: string }).destinationId, 'd')
  assert.equal('destinationId' in (heard[1] as object), false)
})

test('pickMember: round-robin goes round the pods in the order of their ids, by default', async t => {
  const scene = setScene(t)
  for (const memberId of ['pod-c', 'pod-a', 'pod-b']) await scene.liveMember(memberId)
  const registry = scene.registry()
  const picks: string[] = []
  for (let i = 0; i < 6; i++) picks.push((await registry.pickMember())?.memberId ?? '')
  const order = ['pod-a', 'pod-b', 'pod-c']
  const first = order.indexOf(picks[0] as string)
  assert.deepEqual(picks, picks.map((_, i) => order[(first + i) % 3]))
})

test('addPodToDestination: a live pod is added, twice is true too, and the pods there stay', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  await scene.liveMember('pod-2')
  const registry = scene.registry()

  assert.equal(await registry.addPodToDestination('d', 'pod-1'), true)
  assert.equal(await registry.addPodToDestination('d', 'pod-2'), true)
  assert.equal(await registry.addPodToDestination('d', 'pod-2'), true)

  assert.deepEqual(await scene.pods('d'), ['pod-1', 'pod-2'])
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-2'), 'pending'), '1')
})

test('addPodToDestination: a draining pod, a dead one and an unknown one are refused, and no key is written', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.setDraining(true)
  await scene.raw.sadd(scene.key('members'), 'dead-1')
  const registry = scene.registry({ memberIndex: true })

  for (const memberId of ['pod-1', 'dead-1', 'unknown']) assert.equal(await registry.addPodToDestination('d', memberId), false, memberId)

  assert.deepEqual((await scene.keys()).filter(key => /^(destination|owned)/.test(key)), [])
  assert.equal(await scene.raw.exists(scene.key('member', 'dead-1'), scene.key('member', 'unknown')), 0)
  await member.setDraining(false)
  assert.equal(await registry.addPodToDestination('d', 'pod-1'), true)
})

test('removePodFromDestination: takes the pod alone, live or dead, and false says that it was not bound', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'dead-1', 'pod-3')
  const registry = scene.registry()

  assert.equal(await registry.removePodFromDestination('d', 'dead-1'), true)
  assert.equal(await registry.removePodFromDestination('d', 'pod-1'), true)
  assert.equal(await registry.removePodFromDestination('d', 'pod-1'), false)
  assert.deepEqual(await scene.pods('d'), ['pod-3'])
  assert.equal(await registry.removePodFromDestination('d', 'pod-3'), true)
  assert.equal(await registry.hasBinding('d'), false)
  assert.equal(await registry.removePodFromDestination('unknown', 'pod-1'), false)
})

test('readBinding: all pods, live or not, sorted; nothing is pruned nor cached', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-c', { getLoad: () => 2 })
  const draining = await scene.liveMember('pod-a')
  await draining.setDraining(true)
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-c', 'pod-a', 'dead-b')
  const registry = scene.registry()

  assert.deepEqual(await registry.readBinding('d'), [
    { memberId: 'dead-b', isLive: false, member: null },
    { memberId: 'pod-a', isLive: true, member: live('pod-a', 0, true) },
    { memberId: 'pod-c', isLive: true, member: live('pod-c', 2) }
  ])
  assert.deepEqual(await registry.readBinding('unknown'), [])

  await registry.close()
  assert.deepEqual(await scene.pods('d'), ['dead-b', 'pod-a', 'pod-c'])
})

test('hasBinding, deregisterDestination: any pod counts, live or dead; a destination is forgotten once', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1', 'dead-2')
  const registry = scene.registry()
  await registry.resolveDestination('d', { claimOnMiss: true })

  for (const destinationId of ['d', 'orphan']) {
    assert.equal(await registry.hasBinding(destinationId), true, destinationId)
    assert.equal(await registry.deregisterDestination(destinationId), true, destinationId)
    assert.equal(await registry.hasBinding(destinationId), false, destinationId)
    assert.equal(await registry.deregisterDestination(destinationId), false, destinationId)
    assert.equal(await registry.resolveDestination(destinationId), null, destinationId)
  }
  assert.deepEqual((await scene.keys()).filter(key => key.startsWith('destination')), [])
})

test('resolveLock: a lock leads to its pod while that lives; null for an unknown one', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  const registry = scene.registry()
  await member.registerLock('lock-1', 'd', { isolationLevel: 'serializable' })

  assert.deepEqual(await registry.resolveLock('lock-1'), { address: 'http://pod-1.test:3000', memberId: 'pod-1' })
  assert.equal(await registry.resolveLock('lock-2'), null)
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal(await registry.resolveLock('lock-1'), null)
})

test('readBinding, resolveDestination: a key of another type is a coded error for this destination alone', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  await scene.raw.set(scene.key('destination', 'text'), 'not a set')
  const registry = scene.registry()
  const isRefusal = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_STORE_REFUSED') && /WRONGTYPE/.test((error as Error).message)

  await assert.rejects(registry.readBinding('text'), isRefusal)
  await assert.rejects(registry.resolveDestination('text', { claimOnMiss: true, reassignOrphans: true }), isRefusal)
  await assert.rejects(registry.addPodToDestination('text', 'pod-1'), isRefusal)
  await assert.rejects(registry.deregisterDestination('text'), isRefusal)

  assert.equal(await scene.raw.get(scene.key('destination', 'text')), 'not a set')
  assert.equal((await registry.resolveDestination('d', { claimOnMiss: true }))?.memberId, 'pod-1')
})
