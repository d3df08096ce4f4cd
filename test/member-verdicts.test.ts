import assert from 'node:assert/strict'
import test from 'node:test'
import type { CoordinatorErrorCode, Member } from '../src/index.ts'
import { isCoordinatorError } from '../src/index.ts'
import { gate, watchScripts } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'

const superseded: CoordinatorErrorCode = 'PLT_COORDINATOR_SUPERSEDED'

/** The calls of a member by which it may learn that another process has its id, with their scripts. */
const calls: [name: string, script: string, call: (member: Member) => Promise<unknown>, answer: unknown][] = [
  ['registerLock', 'register-lock', member => member.registerLock('lock-1', 'tenant-1'), superseded],
  ['addToDestination', 'bind', member => member.addToDestination('tenant-1'), false],
  ['removeFromDestination', 'unbind', member => member.removeFromDestination('tenant-1'), false]
]

async function outcome (work: Promise<unknown>): Promise<unknown> {
  return await work.catch((error: unknown) => {
    if (!isCoordinatorError(error)) throw error
    return error.code
  })
}

for (const [name, script, call, answer] of calls) {
  for (const isDuring of [false, true]) {
    test(`${name}(): a verdict of an earlier registration that comes ${isDuring ? 'during' : 'after'} a register() does not close the member (G21)`, async t => {
      const scene = setScene(t)
      const watch = watchScripts(scene.raw)
      const told: string[] = []
      const member = await scene.liveMember('pod-1', { redis: watch.client, onError: error => { told.push(error.code) } })
      await scene.liveMember('pod-1', { address: 'http://other.test:1' })
      const [verdict, registration] = [gate(), gate()]
      const executed = new Set<string>()
      watch.interceptReply = async sent => {
        executed.add(sent.script)
        if (sent.script === script) await verdict.passed
        if (sent.script === 'register-member') await registration.passed
      }

      const early = outcome(call(member))
      await until(() => executed.has(script), 'the verdict is on its way')
      const registering = member.register()
      await until(() => executed.has('register-member'), 'it registers')
      if (!isDuring) {
        registration.open()
        await registering
      }
      verdict.open()
      assert.equal(await early, answer)
      registration.open()
      await registering
      watch.interceptReply = () => {}

      assert.equal(await member.heartbeat(), true)
      assert.deepEqual(told, [])
      assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'incarnation'), member.incarnation)
      await member.registerLock('lock-2', 'tenant-1')
      assert.equal(await member.addToDestination('tenant-1'), true)
    })
  }

  test(`${name}(): of a member that was superseded is reported once, for 50 calls at once, and closes it (G21)`, async t => {
    const scene = setScene(t)
    const told: string[] = []
    const member = await scene.liveMember('pod-1', { redis: scene.raw, onError: error => { told.push(error.code) } })
    await scene.raw.sadd(scene.key('destination', 'tenant-1'), 'pod-1')
    const successor = await scene.liveMember('pod-1', { address: 'http://other.test:1' })
    const record = await scene.raw.hgetall(scene.key('member', 'pod-1'))

    const answers = await Promise.all(Array.from({ length: 50 }, () => outcome(call(member))))

    assert.deepEqual(new Set(answers), new Set([answer]))
    assert.deepEqual(told, [superseded])
    assert.equal(await member.heartbeat(), false)
    assert.equal(await member.setDraining(true), false)
    assert.deepEqual(told, [superseded], 'one verdict, one report')
    assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), record)
    assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
    assert.equal(await successor.heartbeat(), true)
  })
}

test('addToDestination(), removeFromDestination(): while an older process’s record stands in for an expired one they do not close the newer member', async t => {
  const scene = setScene(t)
  const older = await scene.liveMember('pod-1', { address: 'http://old.test:1' })
  const member = await scene.liveMember('pod-1', { memberIndex: true })
  assert.equal(await member.addToDestination('tenant-1'), true)
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal(await older.heartbeat(), true)

  assert.equal(await member.addToDestination('tenant-2'), false, 'its own record is gone')
  assert.equal(await member.removeFromDestination('tenant-1'), true)
  assert.equal(await member.heartbeat(), true)
  assert.equal(await member.addToDestination('tenant-2'), true)
  assert.equal(await older.addToDestination('tenant-3'), false)
  assert.deepEqual((await member.listOwned()), ['tenant-2'])
})

test('deregister(): while a register() that strictFeatures refuses is on its way the member stays deregistered', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client, strictFeatures: true })
  await scene.raw.hset(scene.key('features'), 'memberIndex', '1')
  const answer = gate()
  let isRefused = false
  watch.interceptReply = async ({ script }) => {
    if (script !== 'register-member') return
    isRefused = true
    await answer.passed
  }

  const registering = outcome(member.register())
  await until(() => isRefused, 'the refusal is on its way')
  const leaving = member.deregister()
  answer.open()

  assert.equal(await registering, 'PLT_COORDINATOR_FEATURE_MISMATCH')
  assert.equal(await leaving, true)
  assert.deepEqual([await member.heartbeat(), await member.setDraining(true)], [false, false])
  assert.equal(await outcome(member.registerLock('lock-1', 'tenant-1')), 'PLT_COORDINATOR_NOT_REGISTERED')
  assert.deepEqual(await scene.keys(), ['features'])
})

test('register(): that strictFeatures refuses leaves a member that was registered as it was', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { strictFeatures: true })
  await scene.raw.hset(scene.key('features'), 'memberIndex', '1')

  assert.equal(await outcome(member.register()), 'PLT_COORDINATOR_FEATURE_MISMATCH')

  assert.equal(await member.heartbeat(), true)
})

test('deregister(): leaves a plain record that other software wrote at another address, after ours expired', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.rawMember('pod-1', { address: 'http://new.test:3000', load: 7 })

  assert.equal(await member.deregister(), false)

  assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), { address: 'http://new.test:3000', load: '7' })
  assert.deepEqual((await scene.registry().listLiveMembers()).map(({ memberId }) => memberId), ['pod-1'])
})
