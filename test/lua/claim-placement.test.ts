import assert from 'node:assert/strict'
import test from 'node:test'
import { setScriptScene } from '../support/script-scene.ts'
import type { ScriptScene } from '../support/script-scene.ts'

async function place (scene: ScriptScene, count: number, memberIds: string[]): Promise<Record<string, number>> {
  const placed: Record<string, number> = {}
  for (let at = 0; at < count; at++) {
    const { live: [pod] } = await scene.claim(`d-${at}`, memberIds)
    if (pod !== undefined) placed[pod.memberId] = (placed[pod.memberId] ?? 0) + 1
  }
  return placed
}

test('claim.lua: the candidate with the least load + pending is bound, the first of equals', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { load: 2 })
  await scene.register('pod-2', 'two', { load: 1 })
  await scene.register('pod-3', 'three', { load: 1 })

  const first = await scene.claim('d-1', ['pod-1', 'pod-3', 'pod-2'])
  const second = await scene.claim('d-2', ['pod-1', 'pod-3', 'pod-2'])
  const third = await scene.claim('d-3', ['pod-1', 'pod-3', 'pod-2'])

  assert.deepEqual([first, second, third].map(({ live }) => live[0]?.memberId), ['pod-3', 'pod-2', 'pod-1'])
  assert.deepEqual(third.figures, [
    { memberId: 'pod-1', load: 2, pending: 1 }, { memberId: 'pod-3', load: 1, pending: 1 }, { memberId: 'pod-2', load: 1, pending: 1 }
  ])
})

test('claim.lua: the figures leave out candidates that are of no use', async t => {
  const scene = await setScriptScene(t)
  await scene.register('draining', 'one', { isDraining: true })
  await scene.register('pod-1', 'one', { load: 7 })

  const decision = await scene.claim('d', ['gone', 'draining', 'pod-1'])

  assert.deepEqual([decision.live[0]?.memberId, decision.figures], ['pod-1', [{ memberId: 'pod-1', load: 7, pending: 1 }]])
})

test('claim.lua: a claim adds the bindingLoad of its pod, fractions kept, loads 0.9 and 0.1 at 0.01 fill the idler one (G11)', async t => {
  const scene = await setScriptScene(t)
  await scene.register('busy', 'one', { load: 0.9, loadPerBinding: 0.01 })
  await scene.register('idle', 'one', { load: 0.1, loadPerBinding: 0.01 })

  assert.deepEqual(await place(scene, 50, ['busy', 'idle']), { idle: 50 })
  assert.ok(Math.abs(Number((await scene.record('idle'))['pending']) - 0.5) < 1e-9)
  assert.equal((await scene.record('busy'))['pending'], '0')
})

test('claim.lua: pods that weigh a binding differently level out by weight', async t => {
  const scene = await setScriptScene(t)
  await scene.register('light', 'one', { loadPerBinding: 1 })
  await scene.register('heavy', 'one', { loadPerBinding: 3 })

  assert.deepEqual(await place(scene, 40, ['light', 'heavy']), { light: 30, heavy: 10 })
})

test('claim.lua: a load of zero per binding adds nothing', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { loadPerBinding: 0 })

  await place(scene, 3, ['pod-1'])

  assert.equal((await scene.record('pod-1'))['pending'], '0')
})

for (const load of ['NaN', 'nan', 'Infinity', '-Infinity', 'inf', '-inf', '', 'idle', '1e999']) {
  test(`claim.lua: a load of ${load === '' ? 'no text' : load} is never the idlest (G11)`, async t => {
    const scene = await setScriptScene(t)
    await scene.rawMember('odd', { load })
    await scene.rawMember('busy', { load: 1e6 })

    assert.deepEqual(await place(scene, 4, ['odd', 'busy']), { busy: 4 })
    assert.equal((await scene.claim('alone', ['odd'])).live[0]?.memberId, 'odd', 'a pod without a load still serves when it is alone')
  })
}

test('claim.lua: a negative load is a number like others', async t => {
  const scene = await setScriptScene(t)
  await scene.register('zero', 'one', { load: 0 })
  await scene.register('less', 'one', { load: -1.5 })

  assert.deepEqual(await place(scene, 2, ['zero', 'less']), { less: 2 })
})

test('claim.lua: fields that are no numbers count as nothing pending and one a binding', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'pending', 'nan', 'bindingLoad', 'inf')

  const decision = await scene.claim('d', ['pod-1'])

  assert.equal(decision.live[0]?.pending, 1)
  assert.equal((await scene.record('pod-1'))['pending'], '1')
})

test('claim.lua: bindings of a record written with plain commands count until its next EXPIRE', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain', { load: 5 })
  await scene.register('pod-1', 'one', { load: 7 })
  const key = scene.key('member', 'plain')
  const ttl = await scene.raw.pttl(key)

  assert.deepEqual(await place(scene, 4, ['plain', 'pod-1']), { plain: 3, 'pod-1': 1 })
  const expiresAt = await scene.raw.pexpiretime(key)
  assert.equal((await scene.record('plain'))['plainPending'], `${expiresAt}:5/3`)
  assert.equal((await scene.record('plain'))['pending'], undefined, 'nothing is written that its owner would not void')
  assert.ok(await scene.raw.pttl(key) <= ttl, 'the ttl is its owner’s')

  // Its own heartbeat: load 6 now contains the three.
  await scene.raw.multi().hset(key, 'load', 6).expire(key, 300).exec()
  const decision = await scene.claim('next', ['plain', 'pod-1'])
  assert.deepEqual([decision.live[0]?.memberId, decision.live[0]?.pending], ['plain', 1])
})

test('claim.lua: a plainPending that is no sum counts as nothing', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  const key = scene.key('member', 'plain')
  for (const text of ['', '/', 'x', `${await scene.raw.pexpiretime(key)}:0/nan`, `${await scene.raw.pexpiretime(key)}:0/`, `${await scene.raw.pexpiretime(key)}/7`]) {
    await scene.raw.hset(key, 'plainPending', text)
    await scene.raw.del(scene.key('destination', 'd'))
    assert.equal((await scene.claim('d', ['plain'])).live[0]?.pending, 1, `'${text}'`)
  }
})

test('claim.lua: a plain record that never expires is bound and counted too', async t => {
  const scene = await setScriptScene(t)
  await scene.raw.hset(scene.key('member', 'plain'), 'address', 'http://x')

  const decision = await scene.claim('d', ['plain'])

  assert.deepEqual(decision.live, [{ memberId: 'plain', address: 'http://x', load: NaN, pending: 1, draining: false, remainingMs: Infinity }])
  assert.deepEqual(await scene.record('plain'), { address: 'http://x', plainPending: '-1:/1' })
})
