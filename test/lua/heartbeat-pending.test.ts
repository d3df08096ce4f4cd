import assert from 'node:assert/strict'
import test from 'node:test'
import { setScriptScene, unranked } from '../support/script-scene.ts'

test('heartbeat.lua: a binding counts for a whole interval: only what the previous beat was told is subtracted', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.claim('d-1', ['pod-1'])
  await scene.claim('d-2', ['pod-1'])

  const first = await scene.beat(writer, { counted: 0 })
  assert.equal(first.pending, 2)
  await scene.claim('d-3', ['pod-1'])
  const second = await scene.beat(writer, { counted: first.pending })
  assert.equal(second.pending, 1)
  const third = await scene.beat(writer, { counted: second.pending })
  assert.equal(third.pending, 0)
  assert.equal((await scene.record('pod-1'))['pending'], '0')
})

test('heartbeat.lua: sums of fractions leave no crumbs behind', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one', { loadPerBinding: 0.1 })
  for (let at = 0; at < 7; at++) await scene.claim(`d-${at}`, ['pod-1'])

  const { pending } = await scene.beat(writer, { loadPerBinding: 0.1 })
  assert.ok(Math.abs(pending - 0.7) < 1e-9)
  assert.equal(pending, Number((await scene.record('pod-1'))['pending']), 'told to the last digit')
  assert.equal((await scene.beat(writer, { counted: pending, loadPerBinding: 0.1 })).pending, 0)

  for (let at = 0; at < 3; at++) await scene.claim(`e-${at}`, ['pod-1'])
  assert.equal(Number((await scene.record('pod-1'))['pending']), 0.1 + 0.1 + 0.1, 'every digit is kept')
  assert.equal((await scene.beat(writer, { counted: 0.3 })).pending, 0, 'a difference in the last digit is none')
})

test('heartbeat.lua: more counted than there is leaves zero, never less', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.claim('d', ['pod-1'])

  assert.equal((await scene.beat(writer, { counted: 5 })).pending, 0)
  assert.equal((await scene.record('pod-1'))['pending'], '0')
})

test('heartbeat.lua: pending that is no number heals', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  for (const pending of ['nan', '-nan', 'NaN', '', 'x', '-3', '-inf']) {
    await scene.raw.hset(scene.key('member', 'pod-1'), 'pending', pending)
    assert.equal((await scene.beat(writer, { counted: 1 })).pending, 0, pending)
    assert.equal((await scene.record('pod-1'))['pending'], '0', pending)
  }
})

test('heartbeat.lua: pending of a record that was lost, or of another incarnation, is not carried over', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.claim('d', ['pod-1'])
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal((await scene.beat(writer)).pending, 0)

  await scene.rawMember('plain', { pending: '7' })
  assert.equal((await scene.beat(unranked('plain', 'one'))).pending, 0)
})

test('heartbeat.lua: a load that is no number is published as such', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.beat(writer, { load: NaN })

  const page = await scene.plain.listMembers()

  assert.equal((await scene.record('pod-1'))['load'], 'NaN')
  assert.ok(page.status === 'page')
  assert.ok(Number.isNaN(page.live[0]?.load))
})

test('heartbeat.lua: 50 claims that race with beats are all counted', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')

  const claims = Array.from({ length: 50 }, (_, at) => scene.claim(`d-${at}`, ['pod-1']))
  let told = 0
  for (let at = 0; at < 5; at++) {
    const { pending } = await scene.beat(writer, { counted: 0 })
    assert.ok(pending >= told)
    told = pending
  }
  await Promise.all(claims)

  assert.equal((await scene.beat(writer)).pending, 50)
})
