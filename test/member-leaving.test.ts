import assert from 'node:assert/strict'
import test from 'node:test'
import { gate, noScript, watchScripts } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'

const closed = { code: 'PLT_COORDINATOR_CLOSED' }

test('deregister: removes record, membership and locks of the pod, and leaves its bindings', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { memberIndex: true })
  await member.addToDestination('tenant-1')
  await member.registerLock('lock-1', 'tenant-1')

  assert.equal(await member.deregister(), true)

  assert.deepEqual(await scene.keys(), ['destination:tenant-1', 'features', 'owned:pod-1'])
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
})

test('deregister: again, at once or later, is false and harmless; before register() too', async t => {
  const scene = setScene(t)
  const idle = scene.member('pod-1')
  await scene.rawMember('pod-1')
  assert.equal(await idle.deregister(), false)
  assert.equal(await scene.raw.exists(scene.key('member', 'pod-1')), 1, 'it never was its record')

  const member = await scene.liveMember('pod-2')
  const answers = await Promise.all([member.deregister(), member.deregister(), member.deregister()])
  assert.deepEqual(answers.sort(), [false, false, true])
  assert.equal(await member.deregister(), false)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
})

test('deregister: afterwards no beat and no setDraining writes, and only register() opens again', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.deregister()

  assert.equal(await member.heartbeat(), false)
  assert.equal(await member.setDraining(false), false)
  assert.equal(await member.addToDestination('tenant-1'), false)
  await assert.rejects(member.registerLock('lock-1', 'tenant-1'), { code: 'PLT_COORDINATOR_NOT_REGISTERED' })
  assert.deepEqual(await scene.keys(), ['features'])

  await member.register()
  assert.equal(await member.heartbeat(), true)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
})

test('deregister: a beat that waits for getLoad when it is called writes nothing', async t => {
  const scene = setScene(t)
  const load = gate()
  let isHeld = false
  const member = await scene.liveMember('pod-1', {
    getLoad: async () => {
      if (isHeld) await load.passed
      return 1
    }
  })
  isHeld = true
  const beat = member.heartbeat()
  const leaving = member.deregister()
  load.open()

  assert.deepEqual(await Promise.all([beat, leaving]), [false, true])
  assert.deepEqual(await scene.keys(), ['features'])
})

test('deregister: a beat given up after storeTimeout is not sent again when the server then asks for the script', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client, storeTimeout: 100 })
  const answer = gate()
  watch.intercept = async ({ script, command }) => {
    if (script !== 'heartbeat' || command !== 'evalsha') return
    await answer.passed
    throw noScript()
  }

  assert.equal(await member.heartbeat(), false)
  assert.equal(await member.deregister(), true)
  answer.open()
  await settled()

  assert.deepEqual(watch.sent.filter(({ command }) => command === 'eval'), [])
  assert.deepEqual(await scene.keys(), ['features'])
})

for (const leave of ['deregister', 'close'] as const) {
  test(`${leave}: a beat in progress is not sent again after the call, when the server forgot the script (SCRIPT FLUSH)`, async t => {
    const scene = setScene(t)
    const watch = watchScripts(scene.raw)
    const member = await scene.liveMember('pod-1', { redis: watch.client })
    const answer = gate()
    watch.intercept = async ({ script, command }) => {
      if (script !== 'heartbeat' || command !== 'evalsha') return
      await answer.passed
      throw noScript()
    }
    const beat = member.heartbeat()
    await until(() => watch.count('heartbeat') === 1, 'the beat is on its way')
    await scene.raw.del(scene.key('member', 'pod-1'))

    const left = member[leave]()
    answer.open()
    await left

    assert.equal(await beat, false)
    assert.equal(watch.count('heartbeat'), 1)
    assert.equal(await scene.raw.exists(scene.key('member', 'pod-1')), 0)
  })

  test(`${leave}: a beat in the middle of many locks sends no further script after the call`, async t => {
    const scene = setScene(t)
    const watch = watchScripts(scene.raw)
    const member = await scene.liveMember('pod-1', { redis: watch.client })
    await Promise.all(Array.from({ length: 250 }, (_, at) => member.registerLock(`lock-${at}`, 'tenant-1')))
    await scene.raw.del(scene.key('member', 'pod-1'))
    const answer = gate()
    watch.intercept = async ({ script }) => { if (script === 'heartbeat') await answer.passed }

    const beat = member.heartbeat()
    await until(() => watch.count('heartbeat') === 1, 'the beat is on its way')
    const left = member[leave]()
    answer.open()
    await Promise.all([beat, left])

    assert.equal(watch.count('heartbeat'), 1)
    if (leave === 'deregister') assert.deepEqual(await scene.keys(), ['features'])
  })

  test(`${leave}: setDraining() and register() that wait for their turn write nothing after the call`, async t => {
    const scene = setScene(t)
    const watch = watchScripts(scene.raw)
    const member = await scene.liveMember('pod-1', { redis: watch.client })
    const answer = gate()
    watch.intercept = async ({ script }) => { if (script === 'heartbeat') await answer.passed }
    const beat = member.heartbeat()
    await until(() => watch.count('heartbeat') === 1, 'the beat is on its way')
    const draining = member.setDraining(true)
    const registration = member.register()
    const isRefused = assert.rejects(registration, { code: 'PLT_COORDINATOR_NOT_REGISTERED' })

    const left = member[leave]()
    answer.open()
    await Promise.all([beat, left, isRefused])

    assert.equal(await draining, false)
    assert.deepEqual([watch.count('heartbeat'), watch.count('register-member')], [1, 1])
  })
}

test('close: twice and at once settles, every call then rejects, and heartbeat() is false', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { memberIndex: true })

  await Promise.all([member.close(), member.close()])
  await member.close()

  assert.equal(await member.heartbeat(), false)
  await assert.rejects(member.register(), closed)
  await assert.rejects(member.setDraining(true), closed)
  await assert.rejects(member.addToDestination('tenant-1'), closed)
  await assert.rejects(member.removeFromDestination('tenant-1'), closed)
  await assert.rejects(member.registerLock('lock-1', 'tenant-1'), closed)
  await assert.rejects(member.unregisterLock('lock-1'), closed)
  await assert.rejects(member.listPeerLoad(), closed)
  await assert.rejects(member.listOwned(), closed)
  await assert.rejects(member.deregister(), closed)
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0, 'the record stays until its ttl is over')
})

test('close: a deregister() called just before it does all of its work', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await Promise.all(Array.from({ length: 150 }, (_, at) => member.registerLock(`lock-${at}`, 'tenant-1')))

  const leaving = member.deregister()
  await member.close()

  assert.equal(await leaving, true)
  assert.deepEqual(await scene.keys(), ['features'])
})

test('close: a deregister() called just before it removes the record also when the server forgot the scripts', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  await member.registerLock('lock-1', 'tenant-1')
  watch.intercept = ({ command }) => { if (command === 'evalsha') throw noScript() }

  const leaving = [member.deregister(), member.deregister()]
  await member.close()

  assert.deepEqual(await Promise.all(leaving), [true, false])
  assert.deepEqual(await scene.keys(), ['features'])
})

test('close: a borrowed client stays open and without listeners of ours, an own connection ends', async t => {
  const scene = setScene(t)
  const listenerCount = scene.raw.listenerCount('error')
  const borrower = await scene.liveMember('pod-1', { redis: scene.raw })
  await borrower.close()
  assert.equal(await scene.raw.ping(), 'PONG')
  assert.equal(scene.raw.listenerCount('error'), listenerCount)

  const name = scene.keyPrefix
  const owner = await scene.liveMember('pod-2', { redisOptions: { connectionName: name } })
  const isConnected = async (): Promise<boolean> => String(await scene.raw.client('LIST')).includes(name)
  assert.equal(await isConnected(), true)
  await owner.close()
  await until(async () => !await isConnected(), 'the connection is closed')
})

/** Lets every promise that can settle without I/O do so. */
async function settled (): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
}
