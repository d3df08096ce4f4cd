import assert from 'node:assert/strict'
import test from 'node:test'
import { heldLock, manyIds, setScriptScene, trickyIds } from '../support/script-scene.ts'

test('heartbeat.lua: renews the locks it is given, no others, and tells which are gone and which are another pod’s', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  const { writer: other } = await scene.register('pod-2', 'two')
  for (const lockId of ['due', 'later']) await scene.pod.registerLock(writer, heldLock(lockId, 'd'), 5000)
  await scene.pod.registerLock(other, heldLock('taken', 'd'), 5000)
  await scene.heard()

  const reply = await scene.beat(writer, { lockIds: ['gone', 'taken', 'due', 'missing'], lockTtlMs: 600_000 })

  assert.deepEqual([reply.missingLockIds, reply.lostLockIds], [['gone', 'missing'], ['taken']])
  assert.ok(await scene.raw.pttl(scene.key('lock', 'due')) > 500_000)
  for (const lockId of ['later', 'taken']) assert.ok(await scene.raw.pttl(scene.key('lock', lockId)) <= 5000, lockId)
  assert.equal((await scene.raw.hgetall(scene.key('lock', 'taken')))['podId'], 'pod-2')
  assert.deepEqual(await scene.heard(), [])
})

test('heartbeat.lua: locks are renewed by the beat that restores the record', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.pod.registerLock(writer, heldLock('lock', 'd'), 5000)
  await scene.raw.del(scene.key('member', 'pod-1'))

  const reply = await scene.beat(writer, { lockIds: ['lock', 'gone'], lockTtlMs: 600_000 })

  assert.deepEqual([reply.status, reply.missingLockIds, reply.lostLockIds], ['restored', ['gone'], []])
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock')) > 500_000)
})

test('heartbeat.lua: a key of another type in the place of a lock is lost, and costs neither the beat nor the other locks', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.raw.set(scene.key('lock', 'foreign'), 'text', 'EX', 60)
  await scene.pod.registerLock(writer, heldLock('lock', 'd'), 5000)

  const reply = await scene.beat(writer, { load: 4, lockIds: ['foreign', 'lock'], lockTtlMs: 600_000 })

  assert.deepEqual([reply.status, reply.missingLockIds, reply.lostLockIds], ['beat', [], ['foreign']])
  assert.equal((await scene.record('pod-1'))['load'], '4')
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock')) > 500_000)
})

test('heartbeat.lua: 100 locks travel with one beat, ids that look alike among them', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  const lockIds = [...trickyIds, ...manyIds(100, 'lock')].slice(0, 100)
  const kept = lockIds.filter((_, at) => at % 2 === 0)
  for (const lockId of kept) await scene.pod.registerLock(writer, heldLock(lockId, 'd'), 5000)

  const reply = await scene.beat(writer, { lockIds, lockTtlMs: 600_000 })

  assert.deepEqual(reply.missingLockIds, lockIds.filter((_, at) => at % 2 === 1))
  assert.deepEqual(reply.lostLockIds, [])
  for (const lockId of kept) assert.ok(await scene.raw.pttl(scene.key('lock', lockId)) > 500_000)
})
