import assert from 'node:assert/strict'
import test from 'node:test'
import { setScene } from './support/store.ts'

test('setDraining: true writes the flag, false takes it away, and the rest of the record stays', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { getLoad: () => 2 })
  await member.addToDestination('tenant-1')
  const before = await scene.raw.hgetall(scene.key('member', 'pod-1'))

  assert.equal(await member.setDraining(true), true)
  assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), { ...before, draining: '1' })
  assert.equal(await member.setDraining(false), true)
  assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), before)
})

test('setDraining: a draining pod takes nothing new, by any way, and keeps what it has', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ cache: false })
  const member = await scene.liveMember('pod-1')
  await member.addToDestination('tenant-1')

  await member.setDraining(true)

  assert.equal(await member.addToDestination('tenant-2'), false)
  assert.equal(await registry.addPodToDestination('tenant-2', 'pod-1'), false)
  assert.equal(await registry.resolveDestination('tenant-2', { claimOnMiss: true, reassignOrphans: true }), null)
  assert.equal(await registry.pickMember(), null)
  assert.deepEqual(await scene.pods('tenant-2'), [])
  assert.deepEqual(await registry.resolveDestination('tenant-1'), { memberId: 'pod-1', address: 'http://pod-1.test:3000', reassigned: false })
  assert.deepEqual(await member.listPeerLoad(), [{ memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 0, draining: true }])
})

test('setDraining: before register() it is false and writes nothing; register() then writes the flag', async t => {
  const scene = setScene(t)
  const member = scene.member('pod-1')

  assert.equal(await member.setDraining(true), false)
  assert.deepEqual(await scene.keys(), [])
  await member.register()

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), '1')
})

test('setDraining: after the record expired it writes the whole record, never an immortal one', async t => {
  for (const wanted of [true, false]) {
    const scene = setScene(t)
    const member = await scene.liveMember('pod-1')
    await scene.raw.del(scene.key('member', 'pod-1'), scene.key('members'))

    assert.equal(await member.setDraining(wanted), true)

    const record = await scene.raw.hgetall(scene.key('member', 'pod-1'))
    assert.deepEqual([record.address, record.incarnation, record.draining], ['http://pod-1.test:3000', member.incarnation, wanted ? '1' : undefined])
    assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0)
    assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  }
})

test('setDraining: on a record that was written with plain commands it adopts the record', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.rawMember('pod-1', { address: 'http://plain.test:1' })

  assert.equal(await member.setDraining(true), true)

  assert.deepEqual(await scene.raw.hmget(scene.key('member', 'pod-1'), 'address', 'draining'), ['http://pod-1.test:3000', '1'])
})

test('setDraining: a pod written with plain commands drains by its field, and by nothing that says no', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ cache: false })
  for (const [text, isDraining] of [['1', true], ['true', true], ['yes', true], ['0', false], ['false', false], ['', false]] as const) {
    await scene.rawMember('pod-1', { draining: text })
    assert.equal((await registry.listLiveMembers())[0]?.draining, isDraining, `draining '${text}'`)
    assert.equal(await registry.addPodToDestination(`tenant ${text}`, 'pod-1'), !isDraining)
    assert.equal(await registry.resolveDestination(`claim ${text}`, { claimOnMiss: true }) === null, isDraining)
  }
})

test('setDraining: rejects while the store refuses, is remembered, and the next beat writes it', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await scene.raw.del(scene.key('members'), scene.key('member', 'pod-1'))
  await scene.raw.set(scene.key('members'), 'no set')
  await assert.rejects(member.setDraining(true), { code: 'PLT_COORDINATOR_STORE_REFUSED' })
  await scene.raw.del(scene.key('members'))

  assert.equal(await member.heartbeat(), true)

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), '1')
})

test('setDraining: of 50 calls among beats the last one stands', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  for (const last of [true, false]) {
    const calls: Promise<boolean>[] = []
    for (let at = 0; at < 50; at++) calls.push(member.heartbeat(), member.setDraining(at === 49 ? last : at % 2 === 0))
    assert.ok((await Promise.all(calls)).every(Boolean))
    assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), last ? '1' : null)
  }
})

test('deregister: ends draining, so that a pod registered again takes new destinations', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.setDraining(true)

  await member.deregister()
  await member.register()

  assert.equal(await scene.raw.hexists(scene.key('member', 'pod-1'), 'draining'), 0)
  assert.equal(await member.addToDestination('d'), true)
})
