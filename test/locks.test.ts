import assert from 'node:assert/strict'
import test from 'node:test'
import { setScene } from './support/store.ts'

test('registerLock: writes podId, destinationId, incarnation and the metadata, with three times the ttl', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { ttl: 7.5 })

  const answer: unknown = await member.registerLock('lock:{1}', 'tenant 1', { isolationLevel: 'serializable', depth: 2, nested: { a: [1, null] }, no: false, none: null, gone: undefined, empty: '' })

  assert.equal(answer, undefined)
  assert.equal(await scene.raw.type(scene.key('lock', 'lock:{1}')), 'hash')
  assert.deepEqual(await scene.raw.hgetall(scene.key('lock', 'lock:{1}')), {
    podId: 'pod-1',
    destinationId: 'tenant 1',
    incarnation: member.incarnation,
    isolationLevel: 'serializable',
    depth: '2',
    nested: '{"a":[1,null]}',
    no: 'false',
    none: 'null',
    empty: ''
  })
  const remainingMs = await scene.raw.pttl(scene.key('lock', 'lock:{1}'))
  assert.ok(remainingMs > 17_500 && remainingMs <= 22_500, String(remainingMs))
  assert.deepEqual(await scene.registry().resolveLock('lock:{1}'), { memberId: 'pod-1', address: 'http://pod-1.test:3000' })
})

test('registerLock: reserved, unwritable or misshapen metadata and bad ids are coded errors and touch no key', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  const before = await scene.keys()

  for (const name of ['podId', 'destinationId', 'incarnation', 'epoch']) {
    await assert.rejects(member.registerLock('lock-1', 'tenant-1', { [name]: 'x' }), { code: 'PLT_COORDINATOR_INVALID_METADATA', message: `Expected metadata without the reserved field ${name}` })
  }
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  for (const metadata of [{ big: 1n }, { cycle }, null, [], 'text', 5]) {
    await assert.rejects(member.registerLock('lock-1', 'tenant-1', metadata as never), { code: 'PLT_COORDINATOR_INVALID_METADATA' })
  }
  for (const id of ['', undefined, null, 7, {}, '\ud800', 'x'.repeat(16 * 1024 + 1)]) {
    const invalid = { code: 'PLT_COORDINATOR_INVALID_ID' }
    await assert.rejects(member.registerLock(id as never, 'tenant-1'), invalid)
    await assert.rejects(member.registerLock('lock-1', id as never), invalid)
    await assert.rejects(member.unregisterLock(id as never), invalid)
  }
  assert.deepEqual(await scene.keys(), before)
})

test('registerLock: the same id again replaces the lock whole, fields of the earlier one included', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.registerLock('lock-1', 'tenant-1', { level: 'a', old: 'b' })

  await member.registerLock('lock-1', 'tenant-2', { level: 'c' })

  assert.deepEqual(await scene.raw.hgetall(scene.key('lock', 'lock-1')),
    { podId: 'pod-1', destinationId: 'tenant-2', incarnation: member.incarnation, level: 'c' })
})

test('registerLock: metadata named __proto__ or constructor is stored like any other', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')

  await member.registerLock('__proto__', 'tenant-1', JSON.parse('{"__proto__":"a","constructor":"b"}'))

  assert.equal(await scene.raw.hget(scene.key('lock', '__proto__'), '__proto__'), 'a')
  assert.equal(await scene.raw.hget(scene.key('lock', '__proto__'), 'constructor'), 'b')
  assert.equal((await scene.registry().resolveLock('__proto__'))?.memberId, 'pod-1')
})

test('unregisterLock: true ends the lock, false when there is none', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.registerLock('lock-1', 'tenant-1')

  assert.equal(await member.unregisterLock('lock-1'), true)
  assert.equal(await member.unregisterLock('lock-1'), false)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
  assert.equal(await scene.registry().resolveLock('lock-1'), null)
})

test('unregisterLock: a lock that another pod took over stays, though the old owner beats and unregisters late (G30)', async t => {
  const scene = setScene(t)
  const former = await scene.liveMember('pod-1', { ttl: 0.2 })
  const owner = await scene.liveMember('pod-2')
  await former.registerLock('lock-1', 'tenant-1')
  await owner.registerLock('lock-1', 'tenant-1', { level: 'a' })
  await scene.raw.del(scene.key('member', 'pod-1')) // so that the beat looks at all locks

  assert.equal(await former.heartbeat(), true)
  assert.equal(await former.unregisterLock('lock-1'), false)
  assert.equal(await former.deregister(), true)

  assert.deepEqual(await scene.registry().resolveLock('lock-1'), { memberId: 'pod-2', address: 'http://pod-2.test:3000' })
  assert.equal(await scene.raw.hget(scene.key('lock', 'lock-1'), 'level'), 'a')
})

test('resolveLock: null once the pod is gone, by crash or deregister, and no lock key stays for ever (G29)', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  const crashed = await scene.liveMember('pod-1')
  const leaving = await scene.liveMember('pod-2')
  await crashed.registerLock('lock-1', 'tenant-1')
  await leaving.registerLock('lock-2', 'tenant-1')
  assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')

  await scene.raw.del(scene.key('member', 'pod-1'))
  await leaving.deregister()

  assert.equal(await registry.resolveLock('lock-1'), null)
  assert.equal(await registry.resolveLock('lock-2'), null)
  assert.equal(await scene.raw.exists(scene.key('lock', 'lock-2')), 0)
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock-1')) > 0)
})

test('resolveLock: a lock of an earlier incarnation does not resolve, a draining pod\'s does', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  const former = await scene.liveMember('pod-1')
  await former.registerLock('lock-1', 'tenant-1')
  await former.setDraining(true)
  assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')

  const successor = await scene.liveMember('pod-1', { address: 'http://other.test:1' })

  assert.equal(await registry.resolveLock('lock-1'), null)
  assert.equal(await former.unregisterLock('lock-1'), true, 'it is still its own')
  await successor.registerLock('lock-1', 'tenant-1')
  assert.equal(await former.unregisterLock('lock-1'), false)
  assert.deepEqual(await registry.resolveLock('lock-1'), { memberId: 'pod-1', address: 'http://other.test:1' })
})

test('resolveLock: a lock written with plain commands resolves while its pod lives, whichever incarnation', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-1', destinationId: 'tenant-1' })
  assert.equal(await registry.resolveLock('lock-1'), null)
  await scene.rawMember('pod-1')
  assert.deepEqual(await registry.resolveLock('lock-1'), { memberId: 'pod-1', address: 'http://pod-1.test:3000' })

  const member = await scene.liveMember('pod-1')
  assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')
  assert.equal(await member.unregisterLock('lock-1'), true)
})

test('resolveLock: a record written with plain commands over ours ends our locks until the pod beats again', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  const member = await scene.liveMember('pod-1')
  await member.registerLock('lock-1', 'tenant-1')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.rawMember('pod-1')
  assert.equal(await registry.resolveLock('lock-1'), null)

  assert.equal(await member.heartbeat(), true)

  assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')
})

test('registerLock: a superseded process gets a coded error and the store keeps what the successor wrote', async t => {
  const scene = setScene(t)
  const errors: string[] = []
  const former = await scene.liveMember('pod-1', { onError: error => { errors.push(error.code) } })
  const successor = await scene.liveMember('pod-1')
  await successor.registerLock('lock-1', 'tenant-1')
  const superseded = { code: 'PLT_COORDINATOR_SUPERSEDED', statusCode: 409 }

  await assert.rejects(former.registerLock('lock-1', 'tenant-2'), superseded)
  await assert.rejects(former.registerLock('lock-2', 'tenant-2'), superseded)

  assert.deepEqual(errors, ['PLT_COORDINATOR_SUPERSEDED'])
  assert.equal(await scene.raw.hget(scene.key('lock', 'lock-1'), 'incarnation'), successor.incarnation)
  assert.equal(await scene.raw.exists(scene.key('lock', 'lock-2')), 0)
})

test('unregisterLock: a lock of another pod that was written with plain commands stays', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await scene.rawMember('pod-2')
  await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-2', destinationId: 'tenant-1' })

  assert.equal(await member.unregisterLock('lock-1'), false)

  assert.equal((await scene.registry().resolveLock('lock-1'))?.memberId, 'pod-2')
})

test('unregisterLock: 50 callers, one is told that it ended the lock', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.registerLock('lock-1', 'tenant-1')

  const answers = await Promise.all(Array.from({ length: 50 }, () => member.unregisterLock('lock-1')))

  assert.equal(answers.filter(Boolean).length, 1)
})
