import assert from 'node:assert/strict'
import test from 'node:test'
import type { Member } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { gate, noScript, watchScripts } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'

test('setDraining: during an outage it rejects in time and is remembered: the first beat after it writes the flag, with a ttl', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const errors: string[] = []
  const member = await scene.liveMember('pod-1', { storeTimeout: 200, onError: error => { errors.push(error.code) } })
  store.freeze()
  await assert.rejects(member.setDraining(true), { code: 'PLT_COORDINATOR_UNAVAILABLE', statusCode: 503 })
  assert.equal(await member.heartbeat(), false)
  assert.deepEqual(new Set(errors), new Set(['PLT_COORDINATOR_UNAVAILABLE']))
  store.thaw()
  await scene.raw.del(scene.key('member', 'pod-1'))

  await until(() => member.heartbeat(), 'a beat goes through')

  assert.deepEqual(await scene.raw.hmget(scene.key('member', 'pod-1'), 'address', 'draining'), ['http://pod-1.test:3000', '1'])
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0)
})

test('heartbeat: brings pod, flag and locks back after the store restarted empty; bindings are the pod\'s to add again (G10, G36)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { storeTimeout: 300, memberIndex: true })
  await member.addToDestination('tenant-1')
  await member.setDraining(true)
  await member.registerLock('lock-1', 'tenant-1')
  await store.kill()
  for (let beats = 0; beats < 3; beats++) assert.equal(await member.heartbeat(), false)
  await store.start()

  await until(() => member.heartbeat(), 'a beat goes through')

  const registry = scene.registry()
  assert.deepEqual(await registry.listLiveMembers(), [{ memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 0, draining: true }])
  assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')
  assert.deepEqual(await member.listOwned(), [])
  await member.setDraining(false)
  assert.equal(await member.addToDestination('tenant-1'), true)
  assert.deepEqual(await member.listOwned(), ['tenant-1'])
})

test('register: whose reply was lost is settled by the next beat, and the pod is live', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const former = await scene.liveMember('pod-1')
  const member = scene.member('pod-1', { redis: watch.client })
  watch.interceptReply = () => { throw new Error('the connection broke') }
  await assert.rejects(member.register(), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
  watch.interceptReply = () => {}

  assert.equal(await member.heartbeat(), true)
  assert.equal(await former.heartbeat(), false)
  assert.equal(await member.deregister(), true)
  assert.deepEqual(await scene.keys(), ['features'])
})

test('register: that never reached the store does not make a later beat take the id from the process that has it', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const former = await scene.liveMember('pod-1')
  const member = scene.member('pod-1', { redis: watch.client })
  watch.intercept = () => { throw new Error('the connection broke') }
  await assert.rejects(member.register(), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
  watch.intercept = () => {}

  assert.equal(await member.heartbeat(), false)
  assert.equal(await former.heartbeat(), true)
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'incarnation'), former.incarnation)
})

test('pending: a beat whose reply was lost subtracts nothing a second time', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client, loadPerBinding: 10 })
  const pending = async (): Promise<number> => Number(await scene.raw.hget(scene.key('member', 'pod-1'), 'pending'))
  await member.addToDestination('a')
  await member.heartbeat()
  watch.interceptReply = ({ script }) => { if (script === 'heartbeat') throw new Error('the connection broke') }
  assert.equal(await member.heartbeat(), false)
  assert.equal(await pending(), 0)
  watch.interceptReply = () => {}
  await member.addToDestination('b')

  assert.equal(await member.heartbeat(), true)

  assert.equal(await pending(), 10, 'a fresh binding counts for at least one interval')
})

test('deregister: whose store is away rejects, no beat writes afterwards, and it may be called again', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  await member.registerLock('lock-1', 'tenant-1')
  watch.intercept = () => { throw new Error('the connection broke') }
  await assert.rejects(member.deregister(), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
  watch.intercept = () => {}
  assert.equal(await member.heartbeat(), false)

  assert.equal(await member.deregister(), true)
  assert.deepEqual(await scene.keys(), ['features'])
})

test('deregister: whose reply was lost may be called again and still releases the locks', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  await member.registerLock('lock-1', 'tenant-1')
  watch.interceptReply = ({ script }) => { if (script === 'deregister-member') throw new Error('the connection broke') }
  await assert.rejects(member.deregister(), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
  watch.interceptReply = () => {}

  assert.equal(await member.deregister(), false)
  assert.deepEqual(await scene.keys(), ['features'])
})

const lateWrites: [name: string, script: string, call: (member: Member) => Promise<unknown>, next: (member: Member) => Promise<unknown>][] = [
  ['a beat', 'heartbeat', member => member.heartbeat(), member => member.register().then(() => member.deregister()).then(() => member.register())],
  ['a deregister()', 'deregister-member', member => member.deregister(), member => member.register()],
  ['a register()', 'register-member', member => member.register(), member => member.deregister().then(() => member.heartbeat())]
]

for (const [name, script, call, next] of lateWrites) {
  test(`Member: ${name} that was given up after storeTimeout is not sent again by its text, behind later calls`, async t => {
    const scene = setScene(t)
    const watch = watchScripts(scene.raw)
    const member = await scene.liveMember('pod-1', { redis: watch.client, storeTimeout: 100 })
    const answer = gate()
    let isFirst = true
    watch.intercept = async sent => {
      if (sent.script !== script || sent.command !== 'evalsha' || !isFirst) return
      isFirst = false
      await answer.passed
      throw noScript()
    }
    await call(member).catch(() => {})
    await next(member)
    const before = await scene.raw.hgetall(scene.key('member', 'pod-1'))
    const executed = watch.sent.length

    answer.open()
    for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
    await scene.raw.ping()

    assert.equal(watch.sent.length, executed)
    assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), before)
  })
}

test('setDraining: stands though a beat that was given up before it is asked for its text after it', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client, storeTimeout: 100 })
  const answer = gate()
  let isFirst = true
  watch.intercept = async ({ script, command }) => {
    if (script !== 'heartbeat' || command !== 'evalsha' || !isFirst) return
    isFirst = false
    await answer.passed
    throw noScript()
  }
  assert.equal(await member.heartbeat(), false)
  assert.equal(await member.setDraining(true), true)

  answer.open()
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
  await scene.raw.ping()

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), '1')
})
