import assert from 'node:assert/strict'
import test from 'node:test'
import { setScriptScene } from '../support/script-scene.ts'

test('declare-features.lua: the first user records each feature, later ones are told what is recorded, in their order', async t => {
  const scene = await setScriptScene(t)

  assert.deepEqual(await scene.plain.declareFeatures({ memberIndex: '1' }), ['1'])
  assert.deepEqual(await scene.plain.declareFeatures({ fencing: '2', memberIndex: '0' }), ['2', '1'])
  assert.deepEqual(await scene.plain.declareFeatures({ memberIndex: '0', fencing: '0' }), ['1', '2'])

  assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '1', fencing: '2' })
  assert.equal(await scene.raw.pttl(scene.key('features')), -1)
  assert.deepEqual(await scene.heard(), [])
})

test('declare-features.lua: no features makes no key', async t => {
  const scene = await setScriptScene(t)
  assert.deepEqual(await scene.plain.declareFeatures({}), [])
  assert.deepEqual(await scene.keys(), [])
})

test('declare-features.lua: of 50 racing users one records and all are told the same', async t => {
  const scene = await setScriptScene(t)
  const told = await Promise.all(Array.from({ length: 50 }, (_, at) => scene.plain.declareFeatures({ memberIndex: String(at % 2) })))
  assert.equal(new Set(told.map(([value]) => value)).size, 1)
})
