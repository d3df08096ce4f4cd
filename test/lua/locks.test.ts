import assert from 'node:assert/strict'
import test from 'node:test'
import { heldLock, setScriptScene, trickyIds, unranked } from '../support/script-scene.ts'

test('register-lock.lua: writes the lock whole with its ttl, in place of all of an earlier one', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.raw.hset(scene.key('lock', 'l'), 'podId', 'pod-9', 'left', 'over', 'epoch', '4')
  await scene.heard()

  assert.equal(await scene.pod.registerLock(writer, heldLock('l', 'd', 'isolation', 'serializable', '', 'no name'), 5000), 'registered')

  assert.deepEqual(await scene.raw.hgetall(scene.key('lock', 'l')), {
    podId: 'pod-1', destinationId: 'd', incarnation: 'one', isolation: 'serializable', '': 'no name'
  })
  const ttlMs = await scene.raw.pttl(scene.key('lock', 'l'))
  assert.ok(ttlMs > 0 && ttlMs <= 5000)
  assert.deepEqual(await scene.heard(), [])
})

test('register-lock.lua: an earlier incarnation is superseded and leaves the lock that is there (G30)', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.pod.registerLock(young, heldLock('l', 'd'), 5000)
  const before = await scene.raw.hgetall(scene.key('lock', 'l'))

  assert.equal(await scene.pod.registerLock(old, heldLock('l', 'e'), 5000), 'superseded')
  assert.equal(await scene.pod.registerLock({ ...old, registeredAt: '0' }, heldLock('other', 'e'), 5000), 'superseded')

  assert.deepEqual(await scene.raw.hgetall(scene.key('lock', 'l')), before)
  assert.equal(await scene.raw.exists(scene.key('lock', 'other')), 0)
})

test('register-lock.lua: without a record, with a plain one, or with one that an earlier incarnation revived, the lock is written', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.beat(old)

  assert.equal(await scene.pod.registerLock(unranked('gone', 'one'), heldLock('l-1', 'd'), 5000), 'registered')
  assert.equal(await scene.pod.registerLock(unranked('plain', 'one'), heldLock('l-2', 'd'), 5000), 'registered')
  assert.equal(await scene.pod.registerLock(young, heldLock('l-3', 'd'), 5000), 'registered')
})

test('resolve-lock.lua: a lock is held while its pod lives with the incarnation that wrote it', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.pod.registerLock(writer, heldLock('l', 'd'), 5000)
  const keys = [scene.names.lockBase, scene.names.memberBase]

  assert.deepEqual(await scene.run('resolve-lock', keys, ['l']), ['held', 'pod-1', 'http://pod-1.test:3000'])
  await scene.beat(writer, { isDraining: true })
  assert.deepEqual(await scene.plain.resolveLock('l'), { memberId: 'pod-1', address: 'http://pod-1.test:3000' }, 'a draining pod keeps its locks')
  await scene.register('pod-1', 'two')
  assert.deepEqual(await scene.run('resolve-lock', keys, ['l']), ['absent'], 'its pod restarted')
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal(await scene.plain.resolveLock('l'), null, 'its pod is dead')
  await scene.rawMember('pod-1')
  assert.equal(await scene.plain.resolveLock('l'), null, 'its pod is not a Member any more')
  assert.equal(await scene.plain.resolveLock('unknown'), null)
})

test('resolve-lock.lua: answers a list in its order, and the error of one id does not lose the others', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  await scene.pod.registerLock(writer, heldLock('l', 'd'), 5000)
  await scene.raw.set(scene.key('lock', 'text'), 'x')
  await scene.raw.hset(scene.key('lock', 'odd'), 'podId', 'nobody')

  const reply = await scene.run('resolve-lock', [scene.names.lockBase, scene.names.memberBase], ['unknown', 'text', 'l', 'odd', 'l']) as string[]

  assert.match(reply[2] as string, /WRONGTYPE/)
  assert.deepEqual(reply.toSpliced(2, 1), ['absent', 'error', 'held', 'pod-1', 'http://pod-1.test:3000', 'absent', 'held', 'pod-1', 'http://pod-1.test:3000'])
  const answers = await Promise.allSettled(['l', 'text', 'unknown', 'l'].map(lockId => scene.plain.resolveLock(lockId)))
  assert.deepEqual(answers.map(answer => answer.status === 'fulfilled' ? answer.value?.memberId ?? null : answer.reason.code), ['pod-1', 'PLT_COORDINATOR_STORE_REFUSED', null, 'pod-1'])
})

test('resolve-lock.lua: a lock without an incarnation is held while its pod lives, plain or Member (G29)', async t => {
  const scene = await setScriptScene(t)
  await scene.raw.hset(scene.key('lock', 'l'), 'podId', 'pod-1', 'destinationId', 'd')
  await scene.raw.hset(scene.key('lock', 'nobody'), 'destinationId', 'd')

  assert.equal(await scene.plain.resolveLock('l'), null)
  await scene.rawMember('pod-1')
  assert.equal((await scene.plain.resolveLock('l'))?.memberId, 'pod-1')
  await scene.register('pod-1', 'one')
  assert.equal((await scene.plain.resolveLock('l'))?.memberId, 'pod-1')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'address', '')
  assert.equal(await scene.plain.resolveLock('l'), null)
  assert.equal(await scene.plain.resolveLock('nobody'), null)
})

test('release-locks.lua: removes the member’s own, one without incarnation too, and leaves what others took over (G30)', async t => {
  const scene = await setScriptScene(t)
  const { writer: old } = await scene.register('pod-1', 'old')
  const { writer: other } = await scene.register('pod-2', 'two')
  for (const lockId of ['own-1', 'own-2', 'not asked']) await scene.pod.registerLock(old, heldLock(lockId, 'd'), 5000)
  await scene.pod.registerLock(other, heldLock('taken', 'd'), 5000)
  await scene.raw.hset(scene.key('lock', 'plain'), 'podId', 'pod-1')
  const { writer: young } = await scene.register('pod-1', 'new')
  await scene.pod.registerLock(young, heldLock('successor’s', 'd'), 5000)
  await scene.heard()

  assert.equal(await scene.pod.releaseLocks(old, ['own-1', 'taken', 'plain', 'gone', 'successor’s', 'own-2']), 3)
  assert.equal(await scene.pod.releaseLocks(old, ['own-1']), 0)
  assert.equal(await scene.pod.releaseLocks(old, []), 0)

  assert.deepEqual((await scene.keys()).filter(name => name.startsWith('lock')), ['lock:not asked', 'lock:successor’s', 'lock:taken'])
  assert.deepEqual(await scene.heard(), [])
})

test('release-locks.lua: a key of another type among them keeps none of the others', async t => {
  const scene = await setScriptScene(t)
  const { writer } = await scene.register('pod-1', 'one')
  for (const lockId of ['a', 'b']) await scene.pod.registerLock(writer, heldLock(lockId, 'd'), 5000)
  await scene.raw.set(scene.key('lock', 'foreign'), 'text', 'EX', 60)

  assert.equal(await scene.pod.releaseLocks(writer, ['a', 'foreign', 'b']), 2)
  assert.equal(await scene.raw.get(scene.key('lock', 'foreign')), 'text')
})

test('register-lock.lua, resolve-lock.lua, release-locks.lua: ids that look alike are kept apart', async t => {
  const scene = await setScriptScene(t)
  for (const id of trickyIds) {
    const { writer } = await scene.register(id, 'one', { address: `http://${trickyIds.indexOf(id)}` })
    await scene.pod.registerLock(writer, heldLock(id, id), 5000)
  }
  for (const [at, id] of trickyIds.entries()) assert.deepEqual(await scene.plain.resolveLock(id), { memberId: id, address: `http://${at}` })
  for (const [at, id] of trickyIds.entries()) {
    const neighbour = trickyIds[at + 1] ?? 'b'
    assert.equal(await scene.pod.releaseLocks(unranked(id, 'one'), [neighbour, id]), 1)
  }
})
