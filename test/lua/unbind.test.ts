import assert from 'node:assert/strict'
import test from 'node:test'
import { byRegistry, setScriptScene, unranked } from '../support/script-scene.ts'

test('unbind.lua: a pod, live or dead, is dropped with its index and a message; the others stay', async t => {
  const scene = await setScriptScene(t)
  await scene.register('live', 'one')
  await scene.bindRaw('d', 'live', 'dead', 'other')
  for (const memberId of ['live', 'dead']) await scene.raw.sadd(scene.key('owned', memberId), 'd', 'e')
  await scene.heard()

  assert.equal(await scene.indexed.unbind('d', byRegistry('live')), 'unbound')
  assert.equal(await scene.indexed.unbind('d', byRegistry('dead')), 'unbound')

  assert.deepEqual(await scene.pods('d'), ['other'])
  assert.deepEqual([await scene.owned('live'), await scene.owned('dead')], [['e'], ['e']])
  assert.deepEqual(await scene.heard(), ['d d', 'd d'])
})

test('unbind.lua: a pod that is not in the set is absent: no message, no key, and a stale index is healed', async t => {
  const scene = await setScriptScene(t)
  await scene.bindRaw('d', 'other')
  await scene.raw.sadd(scene.key('owned', 'pod-1'), 'd')

  assert.equal(await scene.indexed.unbind('d', byRegistry('pod-1')), 'absent')
  assert.equal(await scene.indexed.unbind('unknown', byRegistry('pod-1')), 'absent')

  assert.deepEqual(await scene.keys(), ['destination:d'])
  assert.deepEqual(await scene.heard(), [])
})

test('unbind.lua: without the member index the owned set is not touched', async t => {
  const scene = await setScriptScene(t)
  await scene.bindRaw('d', 'pod-1')
  await scene.raw.sadd(scene.key('owned', 'pod-1'), 'd')

  assert.equal(await scene.plain.unbind('d', byRegistry('pod-1')), 'unbound')

  assert.deepEqual(await scene.keys(), ['owned:pod-1'], 'an empty set is no key')
})

test('unbind.lua: a member that was replaced cannot drop the binding of its successor (G21)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'new')
  await scene.bindRaw('d', 'pod-1')
  await scene.raw.sadd(scene.key('owned', 'pod-1'), 'd')
  await scene.heard()

  assert.equal(await scene.indexed.unbind('d', unranked('pod-1', 'old')), 'superseded')
  assert.deepEqual([await scene.pods('d'), await scene.owned('pod-1'), await scene.heard()], [['pod-1'], ['d'], []])
  assert.equal(await scene.indexed.unbind('d', unranked('pod-1', 'new')), 'unbound')
})

test('unbind.lua: a record that an earlier incarnation revived keeps the later one from nothing', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.bindRaw('d', 'pod-1')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.beat(old)

  assert.equal(await scene.plain.unbind('d', young), 'unbound')
  assert.deepEqual(await scene.pods('d'), [])
})

test('unbind.lua: a member without a record, or with one written with plain commands, drops its binding', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  await scene.bindRaw('d', 'plain', 'gone')

  assert.equal(await scene.plain.unbind('d', unranked('plain', 'any')), 'unbound')
  assert.equal(await scene.plain.unbind('d', unranked('gone', 'any')), 'unbound')
  assert.deepEqual(await scene.pods('d'), [])
})

test('unbind.lua: an owned set of another type costs neither the change nor its message', async t => {
  const scene = await setScriptScene(t)
  await scene.bindRaw('d', 'pod-1')
  await scene.raw.set(scene.key('owned', 'pod-1'), 'text', 'EX', 60)

  assert.equal(await scene.indexed.unbind('d', byRegistry('pod-1')), 'unbound')
  assert.deepEqual(await scene.pods('d'), [])
  assert.deepEqual(await scene.heard(), ['d d'])
})
