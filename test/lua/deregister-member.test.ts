import assert from 'node:assert/strict'
import test from 'node:test'
import { setScriptScene, unranked } from '../support/script-scene.ts'

test('deregister-member.lua: removes the record and the id, leaves bindings and index, and publishes it', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.register('pod-2', 'two')
  await scene.claim('d', ['pod-1'], { isIndexed: true })
  await scene.heard()

  assert.equal(await scene.deregister(writer), 'deregistered')

  assert.deepEqual(await scene.keys(), ['destination:d', 'features', 'member:pod-2', 'members', 'owned:pod-1'])
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-2'])
  assert.deepEqual(await scene.heard(), ['m pod-1 down'])
})

test('deregister-member.lua: an expired record is absent: the id leaves the set, nothing is published', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.heard()

  assert.equal(await scene.deregister(writer), 'absent')
  assert.deepEqual(await scene.keys(), ['features'])
  assert.deepEqual(await scene.heard(), [])
})

test('deregister-member.lua: a late one of an earlier incarnation leaves the newer record (G21)', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  await scene.register('pod-1', 'new')
  const before = await scene.record('pod-1')
  await scene.heard()

  assert.equal(await scene.deregister(old), 'superseded')
  assert.equal(await scene.deregister({ ...old, registeredAt: '0' }), 'superseded')

  assert.deepEqual(await scene.record('pod-1'), before)
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  assert.deepEqual(await scene.heard(), [])
})

test('deregister-member.lua: the later incarnation removes a record that an earlier one revived', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.beat(old)

  assert.equal(await scene.deregister(young), 'deregistered')
  assert.deepEqual(await scene.record('pod-1'), {})
})

test('deregister-member.lua: a plain record of the member’s address is its own, one of another address or incarnation is not', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  await scene.rawMember('moved', { address: 'http://new.test:3000' })
  await scene.rawMember('pod-1', { incarnation: 'other' })
  const moved = await scene.record('moved')

  assert.equal(await scene.deregister(unranked('plain', 'one')), 'deregistered')
  assert.equal(await scene.deregister(unranked('moved', 'one')), 'superseded')
  assert.equal(await scene.deregister({ ...unranked('moved', 'one'), registeredAt: '9000000000000000' }), 'superseded')
  assert.equal(await scene.deregister(unranked('pod-1', 'one')), 'superseded')
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['moved', 'pod-1'])
  assert.deepEqual(await scene.record('moved'), moved)
  assert.deepEqual(await scene.heard(), ['m plain down'])
})

test('deregister-member.lua: of 50 calls at once one removes it', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.heard()
  const statuses = await Promise.all(Array.from({ length: 50 }, () => scene.deregister(writer)))
  assert.equal(statuses.filter(status => status === 'deregistered').length, 1)
  assert.deepEqual(await scene.heard(), ['m pod-1 down'])
})
