import assert from 'node:assert/strict'
import test from 'node:test'
import { memberRecord, setScriptScene, unranked } from '../support/script-scene.ts'

const first = unranked('pod-1', 'one')

test('register-member.lua: writes the record whole with its ttl, the set, the features and a message', async t => {
  const scene = await setScriptScene(t)

  const reply = await scene.pod.registerMember(first, memberRecord({ load: 0.5, loadPerBinding: 0.25, ttlMs: 5000, memberIndex: '1' }), false)

  const { registeredAt } = reply
  assert.deepEqual(reply, { status: 'registered', registeredAt, pending: 0, recordedIndex: '1' })
  assert.match(registeredAt, /^\d{16}$/, 'microseconds, every digit kept')
  assert.deepEqual(await scene.record('pod-1'), {
    address: 'http://pod.test:3000', load: '0.5', incarnation: 'one', registeredAt, bindingLoad: '0.25', pending: '0'
  })
  const ttlMs = await scene.raw.pttl(scene.key('member', 'pod-1'))
  assert.ok(ttlMs > 0 && ttlMs <= 5000)
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '1' })
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
  assert.deepEqual(await scene.heard(), ['m pod-1 up'])
})

test('register-member.lua: a draining pod registers as such and says so', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { isDraining: true })
  assert.equal((await scene.record('pod-1'))['draining'], '1')
  assert.deepEqual(await scene.heard(), ['m pod-1 draining'])
})

test('register-member.lua: a successor takes the id over, with nothing of the record before it left (G21)', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old', { isDraining: true, load: 9 })
  await scene.raw.hset(scene.key('member', 'pod-1'), 'pending', '4', 'plainPending', '1/9', 'zone', 'b')

  const { writer, pending } = await scene.register('pod-1', 'new')

  assert.equal(pending, 0)
  assert.ok(BigInt(writer.registeredAt) > BigInt(old.registeredAt))
  assert.deepEqual(await scene.record('pod-1'), {
    address: 'http://pod-1.test:3000', load: '0', incarnation: 'new', registeredAt: writer.registeredAt, bindingLoad: '1', pending: '0'
  })
})

test('register-member.lua: the same incarnation keeps what was bound since its last beat', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.claim('d', ['pod-1'])

  const again = await scene.register('pod-1', 'one')

  assert.equal(again.pending, 1)
  assert.equal((await scene.record('pod-1'))['pending'], '1')
})

test('register-member.lua: registeredAt rises even where the server’s clock went back', async t => {
  const scene = await setScriptScene(t)
  const ahead = '4102444800000000'
  await scene.raw.hset(scene.key('member', 'pod-1'), 'address', 'http://x', 'incarnation', 'old', 'registeredAt', ahead)

  const { registeredAt } = await scene.register('pod-1', 'new')

  assert.equal(registeredAt, String(BigInt(ahead) + 1n))
})

test('register-member.lua: a registeredAt that is no number, and a record written with plain commands, are taken over', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('pod-1', { registeredAt: 'soon', plainPending: '1/2' })

  assert.match((await scene.register('pod-1', 'one')).registeredAt, /^\d{16}$/)
  assert.equal((await scene.record('pod-1'))['plainPending'], undefined)
})

for (const index of ['0', '1']) {
  test(`register-member.lua: against a prefix recorded with the other index, ${index} is told, and refused when strict`, async t => {
    const scene = await setScriptScene(t)
    const other = index === '0' ? '1' : '0'
    await scene.raw.hset(scene.key('features'), 'memberIndex', other)

    const strict = await scene.pod.registerMember(first, memberRecord({ memberIndex: index }), true)
    assert.deepEqual(strict, { status: 'mismatch', registeredAt: '0', pending: 0, recordedIndex: other })
    assert.deepEqual(await scene.keys(), ['features'])
    assert.deepEqual(await scene.heard(), [])

    const lenient = await scene.pod.registerMember(first, memberRecord({ memberIndex: index }), false)
    assert.deepEqual([lenient.status, lenient.recordedIndex], ['registered', other])
    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: other })
  })
}

test('register-member.lua: keys of another type refuse it before anything is written', async t => {
  for (const parts of [['members'], ['member', 'pod-1'], ['features']]) {
    const scene = await setScriptScene(t)
    await scene.raw.set(scene.key(...parts), 'text', 'EX', 60)
    await assert.rejects(scene.register('pod-1', 'one'), { code: 'PLT_COORDINATOR_STORE_REFUSED' })
    assert.deepEqual(await scene.keys(), [parts.join(':')])
  }
})

test('register-member.lua: of 50 that register one id at once the last one holds it and each got a rank of its own', async t => {
  const scene = await setScriptScene(t)
  const replies = await Promise.all(Array.from({ length: 50 }, (_, at) => scene.register('pod-1', `i-${at}`)))

  const ranks = replies.map(({ registeredAt }) => BigInt(registeredAt))
  const highest = ranks.reduce((a, b) => a > b ? a : b)
  assert.equal(new Set(ranks).size, 50)
  assert.equal((await scene.record('pod-1'))['registeredAt'], String(highest))
  assert.equal((await scene.record('pod-1'))['incarnation'], `i-${ranks.indexOf(highest)}`)
})
