import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { CoordinatorError, Member } from '../src/index.ts'
import { gate, noScript, watchScripts } from './support/script-client.ts'
import type { ScriptClient } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const nothingLeft = ['features', 'member:pod-1', 'members']

async function setPod (t: TestContext): Promise<{ scene: Scene, watch: ScriptClient, told: CoordinatorError[], member: Member }> {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const told: CoordinatorError[] = []
  return { scene, watch, told, member: await scene.liveMember('pod-1', { redis: watch.client, ttl: 60, onError: error => { told.push(error) } }) }
}

/** Has a beat look at every lock that the member holds, and write again what is missing. */
async function beatWithAll (scene: Scene, member: Member): Promise<void> {
  await scene.raw.del(scene.key('member', member.memberId))
  assert.equal(await member.heartbeat(), true)
}

test('unregisterLock: right after the registerLock of 50 locks, while they are on their way, leaves none that a beat keeps', async t => {
  const { scene, watch, member } = await setPod(t)
  const lockIds = Array.from({ length: 50 }, (_, at) => `lock-${at}`)
  await member.registerLock('lock-0', 'tenant-1') // so that the server knows the script

  await Promise.all(lockIds.flatMap(lockId => [member.registerLock(lockId, 'tenant-1'), member.unregisterLock(lockId)]))
  watch.sent.length = 0
  await beatWithAll(scene, member)

  assert.deepEqual(await scene.keys(), nothingLeft)
  assert.equal(watch.count('register-lock'), 0)
})

for (const [name, command] of [['is asked for its text', 'evalsha'], ['is sent a second time with its text', 'eval']] as const) {
  test(`unregisterLock: that overtakes a registerLock whose script ${name} leaves no lock`, async t => {
    const { scene, watch, told, member } = await setPod(t)
    const answer = gate()
    let isHeld = false
    watch.intercept = async sent => {
      if (sent.script !== 'register-lock') return
      if (sent.command === command) {
        isHeld = true
        await answer.passed
      }
      if (sent.command === 'evalsha') throw noScript()
    }

    const minted = member.registerLock('lock-1', 'tenant-1')
    await until(() => isHeld, 'the lock is on its way')
    await member.unregisterLock('lock-1')
    answer.open()
    await minted
    watch.intercept = () => {}
    assert.deepEqual(await scene.keys(), nothingLeft)
    await beatWithAll(scene, member)

    assert.deepEqual(await scene.keys(), nothingLeft)
    assert.deepEqual(told, [], 'nothing went wrong')
    const texts = watch.sent.filter(sent => sent.script === 'register-lock' && sent.command === 'eval')
    assert.equal(texts.length, command === 'eval' ? 1 : 0, 'what is given up is not sent')
  })

  test(`unregisterLock: that overtakes a beat whose script for a lost lock ${name} leaves no lock`, async t => {
    const { scene, watch, told, member } = await setPod(t)
    await member.registerLock('lock-1', 'tenant-1')
    await scene.raw.del(scene.key('member', 'pod-1'), scene.key('lock', 'lock-1'))
    const answer = gate()
    let isHeld = false
    watch.intercept = async sent => {
      if (sent.script !== 'register-lock') return
      if (sent.command === command) {
        isHeld = true
        await answer.passed
      }
      if (sent.command === 'evalsha') throw noScript()
    }

    const beat = member.heartbeat()
    await until(() => isHeld, 'the beat writes the lock again')
    assert.equal(await member.unregisterLock('lock-1'), false)
    answer.open()
    assert.equal(await beat, true)
    watch.intercept = () => {}
    assert.deepEqual(await scene.keys(), nothingLeft)
    await beatWithAll(scene, member)

    assert.deepEqual(await scene.keys(), nothingLeft)
    assert.deepEqual(told, [], 'nothing went wrong')
    const texts = watch.sent.filter(sent => sent.script === 'register-lock' && sent.command === 'eval')
    assert.equal(texts.length, command === 'eval' ? 1 : 0, 'what is given up is not sent')
  })
}

test('registerLock: after an unregisterLock of the same id that is still on its way, the lock stays and is kept', async t => {
  const { scene, member } = await setPod(t)
  const lockIds = Array.from({ length: 50 }, (_, at) => `lock-${at}`)
  await member.registerLock('lock-0', 'tenant-1') // so that the server knows the script

  await Promise.all(lockIds.flatMap(lockId => [
    member.registerLock(lockId, 'tenant-1', { turn: 'first' }), member.unregisterLock(lockId), member.registerLock(lockId, 'tenant-2', { turn: 'second' })
  ]))
  assert.equal((await scene.keys()).filter(name => name.startsWith('lock:')).length, 50)
  await scene.raw.del(lockIds.map(lockId => scene.key('lock', lockId)))
  await beatWithAll(scene, member)

  for (const lockId of lockIds) {
    const { destinationId, turn } = await scene.raw.hgetall(scene.key('lock', lockId))
    assert.deepEqual([destinationId, turn], ['tenant-2', 'second'], lockId)
  }
})

test('heartbeat: a lock that another pod took over and ended is not written again (G30)', async t => {
  const { scene, member } = await setPod(t)
  const other = await scene.liveMember('pod-2', { ttl: 60 })
  await member.registerLock('lock-1', 'tenant-1')
  await other.registerLock('lock-1', 'tenant-1')
  assert.equal(await other.unregisterLock('lock-1'), true)
  const clock = performance.now()

  for (const aheadMs of [61_000, 122_000]) {
    t.mock.method(performance, 'now', () => clock + aheadMs)
    assert.equal(await member.heartbeat(), true)
    assert.equal(await scene.raw.exists(scene.key('lock', 'lock-1')), 0)
  }
  await beatWithAll(scene, member)
  assert.equal(await scene.raw.exists(scene.key('lock', 'lock-1')), 0, 'it was forgotten, not only left alone')
})

test('heartbeat: a lock that an operator deleted is not written again, the others beside it are renewed', async t => {
  const { scene, watch, member } = await setPod(t)
  const lockIds = Array.from({ length: 150 }, (_, at) => `lock-${at}`)
  for (const lockId of lockIds) await member.registerLock(lockId, 'tenant-1')
  const deleted = ['lock-0', 'lock-99', 'lock-100', 'lock-149']
  await scene.raw.del(deleted.map(lockId => scene.key('lock', lockId)))
  await scene.raw.pexpire(scene.key('lock', 'lock-1'), 30_000)
  watch.sent.length = 0
  const clock = performance.now()
  t.mock.method(performance, 'now', () => clock + 61_000)

  assert.equal(await member.heartbeat(), true)

  assert.equal(watch.count('register-lock'), 0)
  assert.equal((await scene.keys()).filter(name => name.startsWith('lock:')).length, 146)
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock-1')) > 100_000)
  await beatWithAll(scene, member)
  assert.deepEqual(await scene.raw.exists(deleted.map(lockId => scene.key('lock', lockId))), 0)
})
