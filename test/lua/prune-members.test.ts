import assert from 'node:assert/strict'
import test from 'node:test'
import { manyIds, setScriptScene, trickyIds } from '../support/script-scene.ts'

test('prune-members.lua: ids without a record leave the set; one that registered meanwhile stays (I3)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('back', 'one')
  await scene.rawMember('draining', { draining: '1' })
  await scene.rawMember('no-address', { address: '' })
  await scene.raw.sadd(scene.key('members'), 'gone-1', 'gone-2')
  await scene.heard()

  assert.equal(await scene.plain.pruneMembers(['gone-1', 'back', 'draining', 'no-address', 'not-in-the-set']), 2)

  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['back', 'draining', 'gone-2'])
  assert.deepEqual(await scene.heard(), [])
})

test('prune-members.lua: nothing dead, or no ids at all, removes nothing', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')

  assert.equal(await scene.plain.pruneMembers(['pod-1']), 0)
  assert.equal(await scene.plain.pruneMembers([]), 0)
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
})

test('prune-members.lua: the whole set of crashed pods goes in pages of 100, live ones stay (G16)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  const dead = [...manyIds(2000), ...trickyIds.filter(id => id !== 'x'.repeat(10_240))]
  await scene.raw.sadd(scene.key('members'), ...dead)

  let count = 0
  const ids = await scene.plain.readMemberIds()
  for (let from = 0; from < ids.length; from += 100) count += await scene.plain.pruneMembers(ids.slice(from, from + 100))

  assert.equal(count, dead.length)
  assert.deepEqual(await scene.plain.readMemberIds(), ['live'])
})
