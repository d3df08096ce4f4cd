import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Member } from '../src/index.ts'
import { block } from './support/cache-scene.ts'
import { startOwnStore } from './support/own-store.ts'
import { gate, watchScripts } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

async function mint (member: Member, count: number): Promise<string[]> {
  const lockIds = Array.from({ length: count }, (_, at) => `lock-${at}`)
  await Promise.all(lockIds.map(lockId => member.registerLock(lockId, 'tenant-1', { lockId })))
  return lockIds
}

async function held (scene: Scene): Promise<number> {
  const locks = (await scene.keys()).filter(name => name.startsWith('lock:'))
  const registry = scene.registry()
  const answers = await Promise.all(locks.map(name => registry.resolveLock(name.slice('lock:'.length))))
  return answers.filter(answer => answer !== null).length
}

test('heartbeat: renews no lock that is not due', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  await mint(member, 3)
  for (let beats = 0; beats < 3; beats++) assert.equal(await member.heartbeat(), true)

  assert.deepEqual(watch.sent.filter(({ script }) => script === 'heartbeat').map(({ args }) => args.length), [12, 12, 12])
})

test('heartbeat: renews 250 locks in scripts of 100, each once per ttl', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { ttl: 20, redis: watch.client })
  const now = t.mock.method(performance, 'now')
  const clock = performance.now()
  now.mock.mockImplementation(() => clock)
  const lockIds = await mint(member, 250)
  const renewals = (): string[][] => watch.sent.filter(({ script }) => script === 'heartbeat').map(({ args }) => args.slice(12))

  for (const seconds of [7, 14, 20.001, 21, 28, 35, 40, 41]) {
    now.mock.mockImplementation(() => clock + seconds * 1000)
    watch.sent.length = 0
    assert.equal(await member.heartbeat(), true)
    const isDue = seconds === 20.001 || seconds === 41
    assert.deepEqual(renewals().map(({ length }) => length), isDue ? [100, 100, 50] : [0], `after ${seconds} s`)
    if (isDue) assert.deepEqual(renewals().flat().sort(), [...lockIds].sort())
  }
  assert.equal(watch.count('register-lock'), 0)
})

test('heartbeat: a renewed lock has its whole ttl again', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { ttl: 10 })
  await mint(member, 1)
  const clock = performance.now()
  await scene.raw.pexpire(scene.key('lock', 'lock-0'), 5000)

  t.mock.method(performance, 'now', () => clock + 11_000)
  assert.equal(await member.heartbeat(), true)

  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock-0')) > 20_000)
})

test('heartbeat: a lock that can have expired while its record did not is written again', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { ttl: 10 })
  await mint(member, 2)
  await scene.raw.del(scene.key('lock', 'lock-0'))
  const clock = performance.now()

  t.mock.method(performance, 'now', () => clock + 31_000)
  assert.equal(await member.heartbeat(), true)

  assert.deepEqual(await scene.raw.hgetall(scene.key('lock', 'lock-0')),
    { podId: 'pod-1', destinationId: 'tenant-1', incarnation: member.incarnation, lockId: 'lock-0' })
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock-0')) > 20_000)
})

test('heartbeat: brings back all 250 locks and the record after the store lost its data (G36)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1')
  await member.setDraining(true)
  const lockIds = await mint(member, 250)
  await member.heartbeat()
  await scene.raw.flushall()

  assert.equal(await member.heartbeat(), true)

  assert.equal(await held(scene), lockIds.length)
  assert.equal(await scene.raw.hget(scene.key('lock', 'lock-249'), 'lockId'), 'lock-249')
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), '1')
})

for (const [name, restore] of [['setDraining()', (member: Member) => member.setDraining(true)], ['register()', (member: Member) => member.register()]] as const) {
  test(`heartbeat: brings back the locks also when ${name} wrote the lost record again before it`, async t => {
    const scene = setScene(t)
    const member = await scene.liveMember('pod-1')
    const lockIds = await mint(member, 120)
    await scene.raw.del(scene.key('member', 'pod-1'), ...lockIds.map(lockId => scene.key('lock', lockId)))

    await restore(member)
    assert.equal(await member.heartbeat(), true)

    assert.equal(await held(scene), 120)
  })
}

test('heartbeat: locks it could not write again are written by the next one', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  const lockIds = await mint(member, 120)
  await scene.raw.del(scene.key('member', 'pod-1'), ...lockIds.map(lockId => scene.key('lock', lockId)))
  watch.intercept = ({ script }) => { if (script === 'register-lock') throw new Error('the connection broke') }
  assert.equal(await member.heartbeat(), true)
  assert.equal(await held(scene), 0)
  watch.intercept = () => {}

  assert.equal(await member.heartbeat(), true)

  assert.equal(await held(scene), 120)
})

test('heartbeat: after the event loop was blocked longer than a lock lives, one beat repairs record and locks (G39)', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { ttl: 0.1 })
  await mint(member, 3)
  block(350)
  await until(async () => (await scene.keys()).every(name => !name.startsWith('lock:') && !name.startsWith('member:')), 'record and locks have expired')

  const beat = member.heartbeat()
  assert.equal(await beat, true)

  const names = await scene.keys()
  assert.deepEqual(names.filter(name => name.startsWith('lock:')), ['lock:lock-0', 'lock:lock-1', 'lock:lock-2'])
})

test('heartbeat: locks of a pod that stopped beating go away by themselves (G29)', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { ttl: 0.05 })
  await mint(member, 50)
  await member.close()

  await until(async () => (await scene.keys()).every(name => !name.startsWith('lock:')), 'the locks have expired')
})

test('unregisterLock: a lock released while a beat is about to write it again stays released', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  const lockIds = await mint(member, 20)
  await scene.raw.del(scene.key('member', 'pod-1'), ...lockIds.map(lockId => scene.key('lock', lockId)))
  const renewal = gate()
  let isRenewing = false
  watch.intercept = async ({ script, args }) => {
    if (script !== 'heartbeat' || args.length === 12) return
    isRenewing = true
    await renewal.passed
  }

  const beat = member.heartbeat()
  await until(() => isRenewing, 'the beat asks for the locks')
  assert.equal(await member.unregisterLock('lock-7'), false)
  renewal.open()

  assert.equal(await beat, true)
  assert.equal(await held(scene), 19)
  assert.equal(await scene.raw.exists(scene.key('lock', 'lock-7')), 0)
})

test('unregisterLock: 50 locks released while 20 beats renew them leave none behind', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { redis: scene.raw, ttl: 60 })
  const clock = performance.now()
  let aheadMs = 0
  t.mock.method(performance, 'now', () => clock + aheadMs)
  const lockIds = await mint(member, 50)

  const beating = (async () => {
    for (let beats = 0; beats < 20; beats++) {
      aheadMs += 61_000
      await scene.raw.del(scene.key('lock', `lock-${beats * 2}`))
      await member.heartbeat()
    }
  })()
  for (const lockId of lockIds) {
    await member.unregisterLock(lockId)
    await sleep(0)
  }
  await beating

  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
})

test('deregister: locks minted and beats sent at the same time leave nothing behind', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { redis: scene.raw })
  await mint(member, 120)

  const late = Array.from({ length: 50 }, (_, at) => member.registerLock(`late-${at}`, 'tenant-1').catch((error: unknown) => error))
  const beat = member.heartbeat()
  const leaving = member.deregister()
  await Promise.all([...late, beat])

  assert.equal(await leaving, true)
  assert.deepEqual(await scene.keys(), ['features'])
})
