import assert from 'node:assert/strict'
import test from 'node:test'
import { byRegistry, manyIds, setScriptScene, trickyIds, unranked } from '../support/script-scene.ts'

test('bind.lua: the first pod is bound without a message, a second with one, and each counts as pending', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { loadPerBinding: 0.1 })
  await scene.register('pod-2', 'two')
  await scene.heard()

  assert.equal(await scene.plain.bind('d', byRegistry('pod-1')), 'bound')
  assert.deepEqual(await scene.heard(), [])
  assert.equal(await scene.plain.bind('d', byRegistry('pod-2')), 'bound')
  assert.deepEqual(await scene.heard(), ['d d'])

  assert.deepEqual(await scene.pods('d'), ['pod-1', 'pod-2'])
  assert.equal(Number((await scene.record('pod-1'))['pending']), 0.1)
  assert.equal((await scene.record('pod-2'))['pending'], '1')
  assert.deepEqual(await scene.keys(), ['destination:d', 'features', 'member:pod-1', 'member:pod-2', 'members'])
})

test('bind.lua: a pod that is in the set already is present, adds nothing and publishes nothing, and its index is healed', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('d', 'pod-1', 'other')
  await scene.heard()

  assert.equal(await scene.indexed.bind('d', byRegistry('pod-1')), 'present')

  assert.equal((await scene.record('pod-1'))['pending'], '0')
  assert.deepEqual(await scene.owned('pod-1'), ['d'])
  assert.deepEqual(await scene.heard(), [])
})

test('bind.lua: a draining or dead pod is refused and no key is made', async t => {
  const scene = await setScriptScene(t)
  await scene.register('draining', 'one', { isDraining: true })
  await scene.rawMember('plain', { draining: 'true' })
  await scene.rawMember('no-address', { address: '' })
  await scene.raw.hset(scene.key('member', 'load-alone'), 'load', '1')
  const keys = await scene.keys()
  await scene.heard()

  for (const memberId of ['draining', 'plain', 'no-address', 'load-alone', 'gone']) {
    assert.equal(await scene.indexed.bind('d', byRegistry(memberId)), 'refused', memberId)
  }
  assert.equal(await scene.indexed.bind('d', unranked('draining', 'one')), 'refused')
  assert.equal(await scene.indexed.bind('d', unranked('gone', 'one')), 'refused')

  assert.deepEqual(await scene.keys(), keys)
  assert.deepEqual(await scene.heard(), [])
})

test('bind.lua: draining written as no text, 0 or false is none', async t => {
  const scene = await setScriptScene(t)
  for (const draining of ['', '0', 'false']) {
    await scene.rawMember('plain', { draining })
    assert.equal(await scene.plain.bind(`d-${draining}`, byRegistry('plain')), 'bound', `'${draining}'`)
  }
})

test('bind.lua: a member binds itself by its own incarnation; by another it is superseded, draining or not, and writes nothing (G21)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'new')
  await scene.heard()
  const keys = await scene.keys()

  assert.equal(await scene.indexed.bind('d', unranked('pod-1', 'old')), 'superseded')
  await scene.register('pod-1', 'new', { isDraining: true })
  assert.equal(await scene.indexed.bind('d', unranked('pod-1', 'old')), 'superseded')
  assert.deepEqual(await scene.keys(), keys)
  await scene.register('pod-1', 'new')
  assert.equal(await scene.indexed.bind('d', unranked('pod-1', 'new')), 'bound')
  assert.deepEqual(await scene.owned('pod-1'), ['d'])
})

test('bind.lua: while the record is one that an earlier incarnation revived, the later one is refused but not superseded', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.beat(old)

  assert.equal(await scene.indexed.bind('d', young), 'refused')
  assert.deepEqual([await scene.pods('d'), await scene.owned('pod-1')], [[], []])
  await scene.beat(young)
  assert.equal(await scene.indexed.bind('d', young), 'bound')
  assert.equal(await scene.indexed.bind('e', old), 'superseded')
})

test('bind.lua: a record written with plain commands is bound for a registry and for a member, pending until its next EXPIRE', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  const key = scene.key('member', 'plain')

  assert.equal(await scene.plain.bind('d-1', byRegistry('plain')), 'bound')
  assert.equal(await scene.plain.bind('d-2', unranked('plain', 'any')), 'bound')
  assert.equal((await scene.record('plain'))['plainPending'], `${await scene.raw.pexpiretime(key)}:0/2`)
  await scene.raw.expire(key, 300)
  assert.equal(await scene.plain.bind('d-3', byRegistry('plain')), 'bound')

  assert.equal((await scene.record('plain'))['plainPending'], `${await scene.raw.pexpiretime(key)}:0/1`)
  assert.equal((await scene.record('plain'))['pending'], undefined)
})

test('bind.lua: pending that is no number starts anew', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  for (const [pending, bindingLoad, sum] of [['nan', '2', 2], ['inf', 'inf', 1], ['', '', 1], ['1e-3', '1e-3', 0.002]] as const) {
    await scene.raw.hset(scene.key('member', 'pod-1'), { pending, bindingLoad })
    await scene.raw.del(scene.key('destination', 'd'))
    await scene.plain.bind('d', byRegistry('pod-1'))
    assert.equal(Number((await scene.record('pod-1'))['pending']), sum, `${pending} + ${bindingLoad}`)
  }
})

test('bind.lua: with the member index off no owned set is made', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.plain.bind('d', byRegistry('pod-1'))
  assert.deepEqual(await scene.owned('pod-1'), [])
})

test('bind.lua: a destination key of another type is refused with nothing written (I4)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.raw.set(scene.key('destination', 'd'), 'text', 'EX', 60)

  await assert.rejects(scene.indexed.bind('d', byRegistry('pod-1')), { code: 'PLT_COORDINATOR_STORE_REFUSED' })

  assert.deepEqual(await scene.owned('pod-1'), [])
  assert.equal((await scene.record('pod-1'))['pending'], '0')
})

test('bind.lua: 50 pods that bind at once are all bound, each counted once', async t => {
  const scene = await setScriptScene(t)
  const memberIds = manyIds(50, 'pod')
  for (const memberId of memberIds) await scene.register(memberId, 'one')

  const statuses = await Promise.all([...memberIds, ...memberIds].map(memberId => scene.indexed.bind('d', byRegistry(memberId))))

  assert.equal(statuses.filter(status => status === 'bound').length, 50)
  assert.deepEqual(await scene.pods('d'), [...memberIds].sort())
  for (const memberId of memberIds) assert.equal((await scene.record(memberId))['pending'], '1')
})

test('bind.lua, unbind.lua: ids that look alike are kept apart', async t => {
  const scene = await setScriptScene(t)
  for (const id of trickyIds) await scene.raw.hset(scene.key('member', id), 'address', 'http://x')

  for (const id of trickyIds) assert.equal(await scene.indexed.bind(id, byRegistry(id)), 'bound')
  for (const id of trickyIds) assert.deepEqual([await scene.pods(id), await scene.owned(id)], [[id], [id]])
  for (const [at, id] of trickyIds.entries()) {
    assert.equal(await scene.indexed.unbind(id, byRegistry(trickyIds[at + 1] ?? 'b')), 'absent')
    assert.equal(await scene.indexed.unbind(id, byRegistry(id)), 'unbound')
  }
  assert.deepEqual((await scene.keys()).filter(name => !name.startsWith('member:')), [])
})

test('bind.lua: of 50 that bind at once each is bound by itself, and the error of one does not lose the others', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.register('draining', 'one', { isDraining: true })
  await scene.raw.set(scene.key('destination', 'd-7'), 'text', 'EX', 60)
  await scene.bindRaw('d-9', 'pod-1')
  await scene.bindRaw('d-11', 'other')

  const outcomes = await Promise.allSettled(manyIds(50, 'd').map((id, at) => scene.plain.bind(id, byRegistry(at === 20 ? 'draining' : 'pod-1'), at === 11)))

  const told = outcomes.map(outcome => outcome.status === 'fulfilled' ? outcome.value : outcome.reason.code as string)
  const expected = Array.from({ length: 50 }, () => 'bound')
  Object.assign(expected, { 7: 'PLT_COORDINATOR_STORE_REFUSED', 9: 'present', 11: 'taken', 20: 'refused' })
  assert.deepEqual(told, expected)
  assert.equal((await scene.record('pod-1'))['pending'], '46')
  assert.deepEqual(await scene.pods('d-11'), ['other'])
  assert.deepEqual(await scene.pods('d-20'), [])
})
