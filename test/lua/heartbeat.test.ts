import assert from 'node:assert/strict'
import test from 'node:test'
import { heldLock, setScriptScene, unranked } from '../support/script-scene.ts'

test('heartbeat.lua: an ordinary beat renews load, address and ttl and publishes nothing', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one', { ttlMs: 1000 })
  await scene.heard()

  const reply = await scene.beat(writer, { load: 0.75, address: 'http://moved', loadPerBinding: 2, ttlMs: 60_000 })

  assert.deepEqual(reply, { status: 'beat', registeredAt: writer.registeredAt, pending: 0, recordedIndex: '', missingLockIds: [], lostLockIds: [] })
  assert.deepEqual(await scene.record('pod-1'), {
    address: 'http://moved', load: '0.75', incarnation: 'one', registeredAt: writer.registeredAt, bindingLoad: '2', pending: '0'
  })
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 50_000)
  assert.deepEqual(await scene.heard(), [])
})

test('heartbeat.lua: a beat after the record expired writes all of it again, draining included, and publishes it (G39)', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.raw.del(scene.key('member', 'pod-1'), scene.key('members'))
  await scene.heard()

  const reply = await scene.beat(writer, { load: 3, isDraining: true, ttlMs: 5000 })

  assert.deepEqual([reply.status, reply.registeredAt, reply.pending], ['restored', writer.registeredAt, 0])
  assert.deepEqual(await scene.record('pod-1'), {
    address: 'http://pod-1.test:3000', load: '3', incarnation: 'one', registeredAt: writer.registeredAt, bindingLoad: '1', pending: '0', draining: '1'
  })
  const ttlMs = await scene.raw.pttl(scene.key('member', 'pod-1'))
  assert.ok(ttlMs > 0 && ttlMs <= 5000, 'never without a ttl')
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  assert.deepEqual(await scene.heard(), ['m pod-1 draining'])
})

test('heartbeat.lua: what is left of a record without an address counts as none', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  const key = scene.key('member', 'pod-1')
  // A lone HSET of other software after the record expired: no ttl, no address.
  await scene.raw.del(key)
  await scene.raw.hset(key, 'load', '1')
  await scene.heard()

  assert.equal((await scene.beat(writer)).status, 'restored')
  assert.ok(await scene.raw.pttl(key) > 0)
  assert.deepEqual(await scene.heard(), ['m pod-1 up'])
})

test('heartbeat.lua: draining is published when it begins and when it ends, not while it lasts', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.heard()

  await scene.beat(writer, { isDraining: true })
  assert.deepEqual(await scene.heard(), ['m pod-1 draining'])
  assert.equal((await scene.record('pod-1'))['draining'], '1')
  await scene.beat(writer, { isDraining: true })
  assert.deepEqual(await scene.heard(), [])
  await scene.beat(writer)
  assert.deepEqual(await scene.heard(), ['m pod-1 up'])
  assert.equal((await scene.record('pod-1'))['draining'], undefined)
  await scene.beat(writer)
  assert.deepEqual(await scene.heard(), [])
})

test('heartbeat.lua: draining written as no text, 0 or false was none, any other text was', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  for (const [draining, heard] of [['', []], ['0', []], ['false', []], ['true', ['m pod-1 up']]] as const) {
    await scene.raw.hset(scene.key('member', 'pod-1'), 'draining', draining)
    await scene.heard()
    await scene.beat(writer)
    assert.deepEqual(await scene.heard(), heard, `'${draining}'`)
  }
})

test('heartbeat.lua: an earlier incarnation is superseded: it writes nothing, renews nothing and publishes nothing (G21)', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  await scene.pod.registerLock(old, heldLock('lock', 'd'), 60_000)
  await scene.register('pod-1', 'new', { ttlMs: 5000 })
  const before = await scene.record('pod-1')
  await scene.raw.del(scene.key('members'))
  await scene.heard()

  const reply = await scene.beat(old, { load: 9, isDraining: true, lockIds: ['lock'], lockTtlMs: 600_000 })

  assert.deepEqual(reply, { status: 'superseded', registeredAt: before['registeredAt'], pending: 0, recordedIndex: '', missingLockIds: [], lostLockIds: [] })
  assert.deepEqual(await scene.record('pod-1'), before)
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) <= 5000)
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock')) <= 60_000)
  assert.equal(await scene.raw.exists(scene.key('members')), 0)
  assert.deepEqual(await scene.heard(), [])
})

test('heartbeat.lua: the later incarnation takes its place back from an earlier one that revived the record', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal((await scene.beat(old, { load: 9 })).status, 'restored')
  await scene.claim('d', ['pod-1'])
  await scene.heard()

  const reply = await scene.beat(young, { load: 1 })

  assert.deepEqual([reply.status, reply.registeredAt, reply.pending], ['restored', young.registeredAt, 0])
  assert.deepEqual(await scene.heard(), ['m pod-1 up'])
  assert.equal((await scene.record('pod-1'))['incarnation'], 'new')
  assert.equal((await scene.beat(old)).status, 'superseded')
})

test('heartbeat.lua: a member whose register was never answered has no rank: who registered takes the record from it, never the other way', async t => {
  const scene = await setScriptScene(t)
  const writer = unranked('pod-1', 'one')
  const { writer: registered } = await scene.register('pod-1', 'two')
  await scene.raw.del(scene.key('member', 'pod-1'))

  for (const status of ['restored', 'beat']) {
    const reply = await scene.beat(writer)
    assert.deepEqual([reply.status, reply.registeredAt], [status, '0'])
    assert.equal((await scene.record('pod-1'))['registeredAt'], '0')
  }
  const taken = await scene.beat(registered)
  assert.deepEqual([taken.status, taken.registeredAt], ['restored', registered.registeredAt])
  assert.equal((await scene.beat(writer)).status, 'superseded')
  assert.equal((await scene.record('pod-1'))['incarnation'], 'two')
})

for (const [name, memberIndex, recorded, expected] of [
  ['writes the features again where they are lost', '1', null, '1'], ['leaves the features that are recorded, and tells them', '0', '1', '1']
] as const) {
  test(`heartbeat.lua: the beat that restores the record ${name}`, async t => {
    const scene = await setScriptScene(t)
    const { writer } = await scene.register('pod-1', 'one', { memberIndex })
    await scene.raw.del(scene.key('member', 'pod-1'), scene.key('features'))
    if (recorded !== null) await scene.raw.hset(scene.key('features'), 'memberIndex', recorded)

    const reply = await scene.beat(writer, { memberIndex })

    assert.deepEqual([reply.status, reply.recordedIndex], ['restored', expected])
    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: expected })
    await scene.raw.del(scene.key('features'))
    assert.deepEqual([(await scene.beat(writer, { memberIndex })).recordedIndex, await scene.raw.exists(scene.key('features'))], ['', 0], 'an ordinary beat looks at no features')
  })
}

test('heartbeat.lua: a member whose register was done but not answered learns its rank', async t => {
  const scene = await setScriptScene(t)
  const { registeredAt } = await scene.register('pod-1', 'one')

  const reply = await scene.beat(unranked('pod-1', 'one'))

  assert.deepEqual([reply.status, reply.registeredAt], ['beat', registeredAt])
})

test('heartbeat.lua: without a rank of its own it never displaces another incarnation', async t => {
  const scene = await setScriptScene(t)
  await scene.raw.hset(scene.key('member', 'pod-1'), 'address', 'http://x', 'incarnation', 'other')

  const reply = await scene.beat(unranked('pod-1', 'one'))

  assert.deepEqual([reply.status, reply.registeredAt], ['superseded', '0'])
  assert.deepEqual(await scene.record('pod-1'), { address: 'http://x', incarnation: 'other' })
})

test('heartbeat.lua: a record written with plain commands is adopted, draining of it published as it changes', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('pod-1', { load: 4, draining: '1' })
  await scene.claim('d', ['pod-1'])
  await scene.raw.hset(scene.key('member', 'pod-1'), 'plainPending', '1/7')

  const reply = await scene.beat(unranked('pod-1', 'one'), { load: 5 })

  assert.equal(reply.status, 'restored')
  assert.equal(reply.pending, 0)
  assert.deepEqual(await scene.record('pod-1'), {
    address: 'http://pod-1.test:3000', load: '5', incarnation: 'one', registeredAt: reply.registeredAt, bindingLoad: '1', pending: '0'
  })
  assert.deepEqual(await scene.heard(), ['m pod-1 up'])
})
