import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { Redis } from 'iovalkey'
import type { RedisOptions } from 'iovalkey'
import { allFail, everyMemberCall, everyRegistryCall, failure, within } from './support/every-call.ts'
import { findFreePort } from '../services/free-port.ts'
import { startOwnStore } from './support/own-store.ts'
import { startSilentServer } from './support/silence.ts'
import { setScene, storeUrl, until } from './support/store.ts'

function openClient (t: TestContext, options: RedisOptions = {}, url: string = storeUrl): Redis {
  const client = new Redis(url, options)
  t.after(() => client.disconnect())
  return client
}

test('a shared client: its keyPrefix stands before every key and the channel, and before nothing twice (G08)', async t => {
  const scene = setScene(t)
  const client = openClient(t, { keyPrefix: `${scene.keyPrefix}:` })
  const subscriber = openClient(t)
  const messages: string[] = []
  subscriber.on('message', (_channel, message) => { messages.push(message) })
  await subscriber.subscribe(scene.key('inner', 'changes'))
  const options = { redis: client, keyPrefix: 'inner', memberIndex: true }
  const registry = scene.registry(options)
  const [first, second] = [await scene.liveMember('pod-1', options), await scene.liveMember('pod-2', options)]

  const claimed = await registry.resolveDestination('tenant-1', { claimOnMiss: true })
  await registry.addPodToDestination('tenant-1', 'pod-1')
  await registry.addPodToDestination('tenant-1', 'pod-2')
  await first.registerLock('lock-1', 'tenant-1')
  await second.deregister()

  assert.ok(claimed !== null)
  assert.deepEqual(await scene.keys(), [
    'inner:destination:tenant-1', 'inner:features', 'inner:lock:lock-1', 'inner:member:pod-1', 'inner:members', 'inner:owned:pod-1', 'inner:owned:pod-2'
  ])
  assert.deepEqual(await scene.pods('nothing'), [])
  assert.deepEqual(await registry.listOwned('pod-2'), ['tenant-1'])
  assert.deepEqual((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')
  assert.equal(await registry.hasBinding('tenant-1'), true)
  assert.deepEqual((await registry.readBinding('tenant-1')).map(pod => [pod.memberId, pod.isLive]), [['pod-1', true], ['pod-2', false]])
  await until(() => messages.includes('m pod-2 down'), 'the channel carries the changes')
  assert.equal(await registry.deregisterDestination('tenant-1'), true)
  assert.deepEqual((await scene.keys()).filter(name => /destination|owned/.test(name)), [])
})

test('the keyPrefix of redisOptions stands before every key (G08)', async t => {
  const scene = setScene(t)
  const options = { keyPrefix: 'inner', redisOptions: { keyPrefix: `${scene.keyPrefix}:` } }
  await scene.liveMember('pod-1', options)

  const resolved = await scene.registry(options).resolveDestination('tenant-1', { claimOnMiss: true })

  assert.equal(resolved?.memberId, 'pod-1')
  assert.deepEqual(await scene.keys(), ['inner:destination:tenant-1', 'inner:features', 'inner:member:pod-1', 'inner:members'])
})

test('a shared client: 30 registries and 30 members add one error listener in all, which the last close() takes away; the client stays open (G08)', async t => {
  const scene = setScene(t)
  const client = openClient(t)
  const other = openClient(t)
  await client.ping()
  const methods = Object.keys(client).sort()
  const instances = Array.from({ length: 30 }, (_, i) => [scene.registry({ redis: client }), scene.member(`pod-${i}`, { redis: client })]).flat()
  const [kept, ...closed] = [scene.registry({ redis: client }), ...instances]
  scene.registry({ redis: other })
  const during = client.listenerCount('error')

  await kept?.listLiveMembers()
  await Promise.all(closed.map(each => each.close()))
  const afterMost = client.listenerCount('error')
  await kept?.close()

  assert.deepEqual([during, afterMost, client.listenerCount('error'), other.listenerCount('error')], [1, 1, 0, 1])
  assert.equal(client.status, 'ready')
  assert.equal(await client.ping(), 'PONG')
  assert.deepEqual(Object.keys(client).sort(), methods, 'nothing was put on a client that is only borrowed')
})

test('a shared client: 30 registries opened and closed in turn leave no listener of any event behind (G08)', async t => {
  const scene = setScene(t)
  const client = openClient(t)
  await client.ping()
  const count = (): number => client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0)
  const before = count()

  for (let i = 0; i < 30; i++) {
    const registry = scene.registry({ redis: client })
    await registry.listLiveMembers()
    await registry.close()
  }

  assert.equal(count(), before)
  assert.equal(client.status, 'ready')
})

test('a shared client: what the store\'s going away says reaches onError of every open instance, and of no closed one (G25)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const client = openClient(t, {}, store.url)
  const told = { registry: 0, member: 0, closed: 0 }
  scene.registry({ redis: client, onError: () => { told.registry++ } })
  scene.member('pod-1', { redis: client, onError: () => { told.member++ } })
  await scene.registry({ redis: client, onError: () => { told.closed++ } }).close()
  client.on('error', () => {}) // for the time after this test's instances are closed
  await client.ping()

  await store.kill()
  await until(() => told.registry >= 2, 'the connection failed twice')

  assert.deepEqual(told, { registry: told.registry, member: told.registry, closed: 0 })
})

const storeTimeout = 300

const states: Record<string, (t: TestContext) => Promise<Redis>> = {
  'that was disconnected by the application': async t => {
    const client = openClient(t)
    await client.ping()
    client.disconnect()
    return client
  },
  'that was quit by the application': async t => {
    const client = openClient(t)
    await client.quit()
    return client
  },
  'that is connecting to a server that says nothing': async t => openClient(t, {}, `redis://127.0.0.1:${await startSilentServer(t)}`),
  'that reconnects for ever': async t => openClient(t, { maxRetriesPerRequest: null }, `redis://127.0.0.1:${await findFreePort()}`),
  'that waits for its first command (lazyConnect), its store down': async t => openClient(t, { lazyConnect: true }, `redis://127.0.0.1:${await findFreePort()}`),
  'without an offline queue, its store down': async t => openClient(t, { enableOfflineQueue: false }, `redis://127.0.0.1:${await findFreePort()}`),
  'without retries, its store down': async t => openClient(t, { retryStrategy: () => null }, `redis://127.0.0.1:${await findFreePort()}`)
}

for (const [state, open] of Object.entries(states)) {
  test(`a shared client ${state}: every call fails with a code within storeTimeout, and close() settles`, async t => {
    const client = await open(t)
    client.on('error', () => {})
    const scene = setScene(t)
    const registry = scene.registry({ redis: client, memberIndex: true, storeTimeout })
    const member = scene.member('pod-1', { redis: client, memberIndex: true, storeTimeout })
    await failure(storeTimeout, 'register', member.register(), 'PLT_COORDINATOR_UNAVAILABLE')

    await allFail(storeTimeout, everyRegistryCall(registry), 'PLT_COORDINATOR_UNAVAILABLE')
    for (const [name, call] of Object.entries(everyMemberCall(member))) await failure(storeTimeout, name, call(), 'PLT_COORDINATOR_UNAVAILABLE')
    assert.equal(await within(storeTimeout, 'heartbeat', member.heartbeat()), false)
    await within(storeTimeout, 'close', Promise.all([registry.close(), member.close()]))
  })
}

test('a shared client that waits for its first command (lazyConnect) is connected by the first call, and again after the application disconnected it', async t => {
  const scene = setScene(t)
  const client = openClient(t, { lazyConnect: true })
  const registry = scene.registry({ redis: client, storeTimeout: 10_000 })
  assert.equal(client.status, 'wait')

  assert.deepEqual(await registry.listLiveMembers(), [])
  client.disconnect()
  await until(() => client.status === 'end', 'the client is disconnected')
  await failure(0, 'listLiveMembers', registry.listLiveMembers(), 'PLT_COORDINATOR_UNAVAILABLE')
  await client.connect()
  assert.deepEqual(await registry.listLiveMembers(), [])
})
