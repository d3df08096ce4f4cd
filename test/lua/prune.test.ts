import assert from 'node:assert/strict'
import test from 'node:test'
import { manyIds, setScriptScene } from '../support/script-scene.ts'

test('prune.lua: dead pods beside a live or draining one are removed with their index, and it is published', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.rawMember('draining', { draining: '1' })
  await scene.rawMember('no-address', { address: '' })
  await scene.bindRaw('d', 'live', 'draining', 'gone', 'no-address')
  for (const memberId of ['live', 'gone', 'no-address']) await scene.raw.sadd(scene.key('owned', memberId), 'd', 'e')
  await scene.heard()

  assert.equal(await scene.indexed.prune('d'), 2)

  assert.deepEqual(await scene.pods('d'), ['draining', 'live'])
  assert.deepEqual([await scene.owned('live'), await scene.owned('gone'), await scene.owned('no-address')], [['d', 'e'], ['e'], ['e']])
  assert.deepEqual(await scene.heard(), ['d d'])
})

test('prune.lua: a destination of which all or none are dead, or without pods, is left as it is (I3)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('lost', 'gone-1', 'gone-2')
  await scene.bindRaw('held', 'live')
  await scene.raw.sadd(scene.key('owned', 'gone-1'), 'lost')
  const keys = await scene.keys()
  await scene.heard()

  for (const id of ['lost', 'held', 'unknown']) assert.equal(await scene.indexed.prune(id), 0, id)

  assert.deepEqual(await scene.keys(), keys)
  assert.deepEqual(await scene.pods('lost'), ['gone-1', 'gone-2'])
  assert.deepEqual(await scene.owned('gone-1'), ['lost'])
  assert.deepEqual(await scene.heard(), [])
})

test('prune.lua: a pod that came back since it was seen dead stays', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('d', 'live', 'back', 'gone')
  await scene.register('back', 'two')

  assert.equal(await scene.plain.prune('d'), 1)
  assert.deepEqual(await scene.pods('d'), ['back', 'live'])
})

test('prune.lua: without the member index no owned set is touched', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('d', 'live', 'gone')
  await scene.raw.sadd(scene.key('owned', 'gone'), 'd')

  assert.equal(await scene.plain.prune('d'), 1)
  assert.deepEqual(await scene.owned('gone'), ['d'])
})

for (const isIndexed of [false, true]) {
  test(`prune.lua: 20,000 dead pods go at once and the live ones stay, member index ${isIndexed ? 'on' : 'off'} (G16)`, async t => {
    const scene = await setScriptScene(t)
    const live = manyIds(20, 'live')
    for (const memberId of live) await scene.rawMember(memberId)
    await scene.bindRaw('d', ...manyIds(20_000), ...live)

    assert.equal(await (isIndexed ? scene.indexed : scene.plain).prune('d'), 20_000)
    assert.deepEqual(await scene.pods('d'), [...live].sort())
    assert.deepEqual(await scene.heard(), ['d d'])
  })
}

test('prune.lua: an owned set of another type keeps nothing from being pruned', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('d', 'live', 'gone-1', 'gone-2')
  await scene.raw.set(scene.key('owned', 'gone-1'), 'text', 'EX', 60)
  await scene.raw.sadd(scene.key('owned', 'gone-2'), 'd')

  assert.equal(await scene.indexed.prune('d'), 2)
  assert.deepEqual([await scene.pods('d'), await scene.owned('gone-2')], [['live'], []])
})
