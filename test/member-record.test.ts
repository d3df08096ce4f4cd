import assert from 'node:assert/strict'
import test from 'node:test'
import { startOwnStore } from './support/own-store.ts'
import { setScene } from './support/store.ts'

test('register: writes the set of members and a record with a ttl, to the letter of the key layout', async t => {
  const scene = setScene(t)
  const member = scene.member('pod-1', { ttl: 12.5, getLoad: () => 3.25, loadPerBinding: 0.01 })

  const answer: unknown = await member.register()

  assert.equal(answer, undefined)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
  assert.equal(await scene.raw.type(scene.key('members')), 'set')
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  assert.equal(await scene.raw.ttl(scene.key('members')), -1)
  assert.equal(await scene.raw.type(scene.key('member', 'pod-1')), 'hash')
  const { registeredAt, ...record } = await scene.raw.hgetall(scene.key('member', 'pod-1'))
  assert.deepEqual(record, { address: 'http://pod-1.test:3000', load: '3.25', incarnation: member.incarnation, bindingLoad: '0.01', pending: '0' })
  assert.match(String(registeredAt), /^\d{16}$/)
  const remainingMs = await scene.raw.pttl(scene.key('member', 'pod-1'))
  assert.ok(remainingMs > 7500 && remainingMs <= 12_500, String(remainingMs))
})

test('register: by default ttl is 30 s, the load 0, bindingLoad 1, the prefix coordinator, and no index is kept', async t => {
  const store = await startOwnStore(t) // the default prefix may be in use on the shared one
  const scene = setScene(t, store.url, 'coordinator')
  const member = await scene.liveMember('pod-of-the-defaults', { keyPrefix: undefined, ttl: undefined, getLoad: undefined, loadPerBinding: undefined, memberIndex: undefined })
  await member.addToDestination('destination-of-the-defaults')

  const record = await scene.raw.hgetall('coordinator:member:pod-of-the-defaults')
  assert.deepEqual([record.load, record.bindingLoad, record.pending], ['0', '1', '1'])
  const remainingMs = await scene.raw.pttl('coordinator:member:pod-of-the-defaults')
  assert.ok(remainingMs > 25_000 && remainingMs <= 30_000, String(remainingMs))
  assert.deepEqual(await scene.pods('destination-of-the-defaults'), ['pod-of-the-defaults'])
  assert.equal(await scene.raw.exists('coordinator:owned:pod-of-the-defaults'), 0)
  await assert.rejects(member.listOwned(), { code: 'PLT_COORDINATOR_MEMBER_INDEX_OFF' })
})

test('register: two processes of one memberId have an incarnation each, and so have two members of one process', async t => {
  const scene = setScene(t)
  const [first, second] = [scene.member('pod-1'), scene.member('pod-1')]
  assert.notEqual(first.incarnation, second.incarnation)
  assert.deepEqual([first.memberId, first.address], ['pod-1', 'http://pod-1.test:3000'])
})

test('register: a pod replaced under the same id keeps its new record though the old process beats, drains and leaves late (G21)', async t => {
  const scene = setScene(t)
  const former = await scene.liveMember('pod-1', { address: 'http://old.test:1' })
  await former.setDraining(true)
  const successor = await scene.liveMember('pod-1', { address: 'http://new.test:1' })

  assert.equal(await former.heartbeat(), false)
  assert.equal(await former.setDraining(true), false)
  assert.equal(await former.addToDestination('tenant-1'), false)
  assert.equal(await former.deregister(), false)

  const record = await scene.raw.hgetall(scene.key('member', 'pod-1'))
  assert.deepEqual([record.address, record.incarnation, record.draining], ['http://new.test:1', successor.incarnation, undefined])
  assert.deepEqual(await scene.registry().listLiveMembers(), [{ memberId: 'pod-1', address: 'http://new.test:1', load: 0, draining: false }])
  assert.deepEqual(await scene.pods('tenant-1'), [])
})

test('register: a successor starts without the pending load of its predecessor and keeps its destinations', async t => {
  const scene = setScene(t)
  const former = await scene.liveMember('pod-1')
  await former.addToDestination('tenant-1')
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'), '1')

  const successor = await scene.liveMember('pod-1')

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'), '0')
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
  assert.equal(await former.removeFromDestination('tenant-1'), false, 'the binding is the successor\'s')
  assert.equal(await successor.removeFromDestination('tenant-1'), true)
})

test('register: again by the same process keeps the load that was bound since its last beat', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.addToDestination('tenant-1')

  await member.register()

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'), '1')
})

test('register: of 50 processes that register at once one is the member, and the others learn it', async t => {
  const scene = setScene(t)
  const members = Array.from({ length: 50 }, (_, at) => scene.member('pod-1', { redis: scene.raw, address: `http://pod.test:${at + 1}` }))
  await Promise.all(members.map(member => member.register()))

  const beats = await Promise.all(members.map(member => member.heartbeat()))

  assert.equal(beats.filter(Boolean).length, 1)
  const winner = members[beats.indexOf(true)]
  assert.deepEqual(await scene.raw.hmget(scene.key('member', 'pod-1'), 'incarnation', 'address'), [winner?.incarnation, winner?.address])
})

test('register: takes over a record that says it registered in the future, as after a step of the clock', async t => {
  const scene = setScene(t)
  const former = await scene.liveMember('pod-1')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'registeredAt', '4000000000000000')

  const successor = await scene.liveMember('pod-1')

  assert.equal(await successor.heartbeat(), true)
  assert.equal(await former.heartbeat(), false)
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'incarnation'), successor.incarnation)
})

test('register: rejects when the store refuses, and the pod is not live', async t => {
  const scene = setScene(t)
  await scene.raw.set(scene.key('members'), 'no set')
  const member = scene.member('pod-1')

  await assert.rejects(member.register(), { name: 'CoordinatorError', code: 'PLT_COORDINATOR_STORE_REFUSED' })

  assert.deepEqual(await scene.keys(), ['members'])
})

test('register: rejects when the store is away, within storeTimeout', async t => {
  const scene = setScene(t)
  const member = scene.member('pod-1', { redis: 'redis://127.0.0.1:1', storeTimeout: 500 })
  await assert.rejects(member.register(), { code: 'PLT_COORDINATOR_UNAVAILABLE', statusCode: 503 })
})

for (const [first, second] of [[true, false], [false, true]] as const) {
  test(`register: with strictFeatures it is refused where memberIndex is ${first} and it says ${second}, and nothing is written`, async t => {
    const scene = setScene(t)
    await scene.liveMember('pod-1', { memberIndex: first })
    const strict = scene.member('pod-2', { memberIndex: second, strictFeatures: true })

    await assert.rejects(strict.register(), { code: 'PLT_COORDINATOR_FEATURE_MISMATCH' })

    assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
    assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: first ? '1' : '0' })
    assert.equal(await strict.heartbeat(), false, 'it did not register')
  })

  test(`register: without strictFeatures a difference of memberIndex (${first}, ${second}) is reported and the pod is live`, async t => {
    const scene = setScene(t)
    const errors: string[] = []
    const onError = ({ code }: { code: string }): void => { errors.push(code) }
    await scene.liveMember('pod-1', { memberIndex: first, onError })
    assert.deepEqual(errors, [])

    await scene.liveMember('pod-2', { memberIndex: second, onError })

    assert.deepEqual(errors, ['PLT_COORDINATOR_FEATURE_MISMATCH'])
    assert.ok(await scene.raw.exists(scene.key('member', 'pod-2')))
    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: first ? '1' : '0' })
  })
}

test('register: with strictFeatures it goes through where the features agree, and where it is the first', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { memberIndex: true, strictFeatures: true })
  await scene.liveMember('pod-2', { memberIndex: true, strictFeatures: true })
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['pod-1', 'pod-2'])
})

test('Member: ids and prefixes with odd signs are kept apart and come back as they went in', async t => {
  const scene = setScene(t)
  const memberIds = ['a', 'a:b', 'a b', 'a\nb', 'a\0b', '\u00e4', 'a\u0308', '__proto__', '{a}', '*', 'x'.repeat(256), 'é'.repeat(128)]
  const members = await Promise.all(memberIds.map(memberId => scene.liveMember(memberId, { redis: scene.raw, address: 'http://pod.test:1', memberIndex: true })))
  await Promise.all(members.map(member => member.addToDestination(`of ${member.memberId}`)))

  const peers = await members[0]?.listPeerLoad()

  assert.deepEqual(peers?.map(({ memberId }) => memberId), [...memberIds].sort())
  for (const member of members) assert.deepEqual(await member.listOwned(), [`of ${member.memberId}`])
})
