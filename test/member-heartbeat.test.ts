import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { diagnosticsChannels } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { gate, noScript, watchScripts } from './support/script-client.ts'
import { countCommands, setScene, until } from './support/store.ts'

test('heartbeat: renews the ttl and publishes the load as it is now', async t => {
  const scene = setScene(t)
  let load = 1
  const member = await scene.liveMember('pod-1', { getLoad: () => load })
  await scene.raw.pexpire(scene.key('member', 'pod-1'), 5000)
  load = 0.125

  assert.equal(await member.heartbeat(), true)

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'load'), '0.125')
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 25_000)
})

test('heartbeat: restores the whole record and the membership after expiry, draining included', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { getLoad: () => 4, loadPerBinding: 2 })
  await member.setDraining(true)
  const { registeredAt } = await scene.raw.hgetall(scene.key('member', 'pod-1'))
  await scene.raw.del(scene.key('member', 'pod-1'), scene.key('members'))

  assert.equal(await member.heartbeat(), true)

  assert.deepEqual(await scene.raw.hgetall(scene.key('member', 'pod-1')), {
    address: 'http://pod-1.test:3000', load: '4', draining: '1', incarnation: member.incarnation, registeredAt, bindingLoad: '2', pending: '0'
  })
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0)
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
})

test('heartbeat: writes again what others changed in its record', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { getLoad: () => 4 })
  await scene.raw.hset(scene.key('member', 'pod-1'), { address: 'http://wrong.test', load: 99, draining: 1 })
  await scene.raw.persist(scene.key('member', 'pod-1'))

  assert.equal(await member.heartbeat(), true)

  assert.deepEqual(await scene.raw.hmget(scene.key('member', 'pod-1'), 'address', 'load', 'draining'), ['http://pod-1.test:3000', '4', null])
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0)
})

test('heartbeat: adopts a record that was written with plain commands', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await scene.raw.del(scene.key('member', 'pod-1'))
  await scene.rawMember('pod-1', { address: 'http://plain.test:1', load: 7, draining: 0 })
  await member.addToDestination('tenant-1')

  assert.equal(await member.heartbeat(), true)

  const { registeredAt, ...record } = await scene.raw.hgetall(scene.key('member', 'pod-1'))
  assert.deepEqual(record, { address: 'http://pod-1.test:3000', load: '0', incarnation: member.incarnation, bindingLoad: '1', pending: '0' })
})

test('heartbeat: is one command, without locks and with up to 100 that are due', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client, ttl: 60 })
  await Promise.all(Array.from({ length: 100 }, (_, at) => member.registerLock(`lock-${at}`, 'tenant-1')))
  await member.heartbeat()
  const clock = performance.now()
  for (const [aheadMs, lockCount] of [[0, 0], [61_000, 100]] as const) {
    t.mock.method(performance, 'now', () => clock + aheadMs)
    watch.sent.length = 0
    assert.equal(await member.heartbeat(), true)
    assert.deepEqual(watch.sent.map(({ script, command, args }) => [script, command, args.length - 12]), [['heartbeat', 'evalsha', lockCount]])
  }
})

test('heartbeat: is one command by the count of the server itself', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1')
  await member.heartbeat()

  const counts = await countCommands(scene.raw, async () => {
    for (let beats = 0; beats < 10; beats++) await member.heartbeat()
  })

  assert.deepEqual([counts.evalsha, counts.eval], [10, undefined])
})

test('heartbeat: 50 at once are one beat with one answer, and a later one is another', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  let loadReads = 0
  const member = await scene.liveMember('pod-1', { redis: watch.client, getLoad: () => ++loadReads })
  await member.heartbeat()
  loadReads = 0
  watch.sent.length = 0
  const answer = gate()
  watch.intercept = async ({ script }) => { if (script === 'heartbeat') await answer.passed }

  const beats = Array.from({ length: 50 }, () => member.heartbeat())
  await until(() => watch.sent.length > 0, 'the beat is on its way')
  beats.push(member.heartbeat())
  answer.open()

  assert.deepEqual(new Set(await Promise.all(beats)), new Set([true]))
  assert.deepEqual([watch.count('heartbeat'), loadReads], [1, 1])
  assert.equal(await member.heartbeat(), true)
  assert.equal(watch.count('heartbeat'), 2)
})

test('heartbeat: never more than one write to the record is under way, whatever is called', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  let [under, most] = [0, 0]
  watch.intercept = async () => {
    most = Math.max(most, ++under)
    await new Promise(resolve => setImmediate(resolve))
    under--
  }
  const calls = Array.from({ length: 50 }, (_, at) => at % 3 === 0 ? member.setDraining(at % 2 === 0) : at % 3 === 1 ? member.heartbeat() : member.register())
  await Promise.all(calls)

  assert.equal(most, 1)
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'draining'), '1', 'the last setDraining() was true')
})

test('heartbeat: before register() it is false, says why through onError, and writes nothing', async t => {
  const scene = setScene(t)
  const errors: string[] = []
  const member = scene.member('pod-1', { onError: error => { errors.push(error.code) } })

  assert.equal(await member.heartbeat(), false)

  assert.deepEqual(errors, ['PLT_COORDINATOR_NOT_REGISTERED'])
  assert.deepEqual(await scene.keys(), [])
})

test('heartbeat: a process that was superseded is told by false, once by onError and by diagnostics, and drops out (G38)', async t => {
  const scene = setScene(t)
  const errors: string[] = []
  const events: unknown[] = []
  const hear = (event: unknown): void => { if ((event as { keyPrefix: string }).keyPrefix === scene.keyPrefix) events.push(event) }
  subscribe(diagnosticsChannels.superseded, hear)
  t.after(() => unsubscribe(diagnosticsChannels.superseded, hear))
  const former = await scene.liveMember('pod-1', { onError: error => { errors.push(error.code) } })
  await scene.liveMember('pod-1')

  assert.deepEqual([await former.heartbeat(), await former.heartbeat(), await former.setDraining(true)], [false, false, false])

  assert.deepEqual(errors, ['PLT_COORDINATOR_SUPERSEDED'])
  assert.deepEqual(events, [{ keyPrefix: scene.keyPrefix, memberId: 'pod-1', incarnation: former.incarnation }])
  await former.register()
  assert.equal(await former.heartbeat(), true, 'register() opens again')
})

test('heartbeat: tells by diagnostics whether the record was renewed, restored or taken over', async t => {
  const scene = setScene(t)
  const statuses: string[] = []
  const hear = (event: unknown): void => {
    const { keyPrefix, status } = event as { keyPrefix: string, status: string }
    if (keyPrefix === scene.keyPrefix) statuses.push(status)
  }
  subscribe(diagnosticsChannels.heartbeat, hear)
  t.after(() => unsubscribe(diagnosticsChannels.heartbeat, hear))
  const member = await scene.liveMember('pod-1')
  await member.heartbeat()
  await scene.raw.del(scene.key('member', 'pod-1'))
  await member.heartbeat()
  await scene.liveMember('pod-1')
  await member.heartbeat()

  assert.deepEqual(statuses, ['beat', 'restored', 'superseded'])
})

test('heartbeat: never rejects, though the store refuses and onError throws, and recovers by itself', async t => {
  const scene = setScene(t)
  const codes: string[] = []
  const member = await scene.liveMember('pod-1', {
    onError: error => {
      codes.push(error.code)
      throw new Error('a metrics callback that fails')
    }
  })
  await scene.raw.del(scene.key('members'))
  await scene.raw.set(scene.key('members'), 'no set')

  assert.equal(await member.heartbeat(), false)
  assert.deepEqual(codes, ['PLT_COORDINATOR_STORE_REFUSED'])

  await scene.raw.del(scene.key('members'))
  assert.equal(await member.heartbeat(), true)
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
})

test('heartbeat: goes through when the server forgot the scripts', async t => {
  const scene = setScene(t)
  const watch = watchScripts(scene.raw)
  const member = await scene.liveMember('pod-1', { redis: watch.client })
  watch.intercept = ({ command }) => { if (command === 'evalsha') throw noScript() }
  await scene.raw.del(scene.key('member', 'pod-1'))

  assert.equal(await member.heartbeat(), true)
  assert.equal(await scene.raw.exists(scene.key('member', 'pod-1')), 1)
})
