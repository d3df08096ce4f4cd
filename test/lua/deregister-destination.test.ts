import assert from 'node:assert/strict'
import test from 'node:test'
import { manyIds, setScriptScene } from '../support/script-scene.ts'

test('deregister-destination.lua: forgets live and dead pods with their index, counts them, and publishes it', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('d', 'live', 'gone')
  await scene.bindRaw('e', 'live')
  for (const memberId of ['live', 'gone']) await scene.raw.sadd(scene.key('owned', memberId), 'd', 'e')
  await scene.heard()

  assert.equal(await scene.indexed.deregisterDestination('d'), 2)

  assert.deepEqual(await scene.keys(), ['destination:e', 'features', 'member:live', 'members', 'owned:gone', 'owned:live'])
  assert.deepEqual([await scene.owned('live'), await scene.owned('gone')], [['e'], ['e']])
  assert.deepEqual(await scene.heard(), ['d d'])
})

test('deregister-destination.lua: one that was not bound is 0 and publishes nothing', async t => {
  const scene = await setScriptScene(t)
  assert.equal(await scene.indexed.deregisterDestination('d'), 0)
  assert.deepEqual(await scene.keys(), [])
  assert.deepEqual(await scene.heard(), [])
})

test('deregister-destination.lua: without the member index no owned set is touched', async t => {
  const scene = await setScriptScene(t)
  await scene.bindRaw('d', 'gone')
  await scene.raw.sadd(scene.key('owned', 'gone'), 'd')

  assert.equal(await scene.plain.deregisterDestination('d'), 1)
  assert.deepEqual(await scene.keys(), ['owned:gone'])
})

test('deregister-destination.lua: 20,000 pods go at once; an owned set of another type costs nothing', async t => {
  const scene = await setScriptScene(t)
  const ids = manyIds(20_000)
  await scene.bindRaw('d', ...ids)
  await scene.raw.set(scene.key('owned', 'dead-0'), 'text', 'EX', 60)
  await scene.raw.sadd(scene.key('owned', 'dead-19999'), 'd')

  assert.equal(await scene.indexed.deregisterDestination('d'), 20_000)
  assert.deepEqual(await scene.keys(), ['owned:dead-0'])
  assert.deepEqual(await scene.heard(), ['d d'])
})
