import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { Redis } from 'iovalkey'
import { failure, within } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import type { OwnStore } from './support/own-store.ts'
import { setScene, storeUrl, until } from './support/store.ts'

test('maxRetriesPerRequest of redisOptions is kept: a call waits for a store that comes back within storeTimeout, one by default does not', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const patient = scene.registry({ storeTimeout: 60_000, redisOptions: { maxRetriesPerRequest: null } })
  const usual = scene.registry({ storeTimeout: 60_000 })
  await Promise.all([patient.listLiveMembers(), usual.listLiveMembers()])

  await store.kill()
  const waiting = patient.listLiveMembers()
  await failure(2000, 'the usual registry', usual.listLiveMembers(), 'PLT_COORDINATOR_UNAVAILABLE')
  await store.start()

  assert.deepEqual(await waiting, [])
})

test('redisOptions that are undefined leave the defaults of this library in place', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const registry = scene.registry({ storeTimeout: 60_000, redisOptions: { maxRetriesPerRequest: undefined, connectTimeout: undefined } as object })
  await registry.listLiveMembers()

  await store.kill()
  // With iovalkey's own default, 20 retries, it would take ten seconds.
  await failure(2000, 'the registry', registry.listLiveMembers(), 'PLT_COORDINATOR_UNAVAILABLE')
})

test('commandTimeout of redisOptions is kept, and so is that of a shared client', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const client = new Redis(store.url, { commandTimeout: 200 })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  const registries = [scene.registry({ storeTimeout: 60_000, redisOptions: { commandTimeout: 200 } }), scene.registry({ storeTimeout: 60_000, redis: client })]
  await Promise.all(registries.map(registry => registry.listLiveMembers()))

  store.freeze()
  const errors = await Promise.all(registries.map(registry => failure(200, 'listLiveMembers', registry.listLiveMembers(), 'PLT_COORDINATOR_UNAVAILABLE')))
  store.thaw()

  for (const error of errors) assert.match(error.message, /Command timed out/)
})

test('redisOptions with lazyConnect open no connection before the first call, and close() without one settles', async t => {
  const scene = setScene(t)
  const connectionName = scene.keyPrefix
  const isConnected = async (): Promise<boolean> => (await scene.raw.call('CLIENT', 'LIST') as string).includes(connectionName)
  const options = { redis: storeUrl, redisOptions: { lazyConnect: true, connectionName } }
  const [unused, used] = [scene.registry(options), scene.registry(options)]
  const early = await isConnected()

  await within(0, 'close', unused.close())
  assert.deepEqual(await used.listLiveMembers(), [])
  const late = await isConnected()
  await used.close()

  assert.deepEqual([early, late], [false, true])
  await until(async () => !await isConnected(), 'the connection is closed')
})

/** A store that is a replica of another one and holds its data, and a direct client to it. */
async function startReplica (t: TestContext): Promise<{ replica: OwnStore, direct: Redis, primary: Redis }> {
  const [first, replica] = [await startOwnStore(t), await startOwnStore(t)]
  const [primary, direct] = [first, replica].map(store => new Redis(store.url, { maxRetriesPerRequest: 1 })) as [Redis, Redis]
  for (const client of [primary, direct]) client.on('error', () => {})
  t.after(() => { primary.disconnect(); direct.disconnect() })
  await primary.sadd('p:members', 'pod-1')
  await primary.hset('p:member:pod-1', { address: 'http://pod-1.test:3000', load: 0 })
  await primary.sadd('p:destination:bound', 'pod-1')
  await primary.sadd('p:destination:orphaned', 'dead')
  await direct.call('REPLICAOF', '127.0.0.1', String(first.port))
  await until(async () => await direct.scard('p:destination:orphaned') === 1, 'the replica holds the data')
  return { replica, direct, primary }
}

test('a read-only store (a failover left the client with a replica): reads work, writes reject as unavailable and are not made (G26)', async t => {
  const { replica, primary } = await startReplica(t)
  const scene = setScene(t, replica.url, 'p')
  const registry = scene.registry({ cache: false })
  const member = scene.member('pod-2')

  assert.equal((await registry.resolveDestination('bound', { claimOnMiss: true, reassignOrphans: true }))?.memberId, 'pod-1')
  assert.equal((await registry.listLiveMembers()).length, 1)
  for (const [name, write] of Object.entries({
    claim: () => registry.resolveDestination('new', { claimOnMiss: true }),
    reassignment: () => registry.resolveDestination('orphaned', { reassignOrphans: true }),
    bind: () => registry.addPodToDestination('new', 'pod-1'),
    unbind: () => registry.removePodFromDestination('bound', 'pod-1'),
    deregister: () => registry.deregisterDestination('bound'),
    register: () => member.register(),
    lock: () => member.registerLock('lock-1', 'bound')
  })) {
    const error = await failure(2000, name, write(), 'PLT_COORDINATOR_UNAVAILABLE')
    assert.match(error.message, /READONLY/, name)
  }
  assert.equal(await member.heartbeat(), false)
  await registry.close()

  assert.deepEqual((await primary.keys('*')).sort(), ['p:destination:bound', 'p:destination:orphaned', 'p:member:pod-1', 'p:members'])
  assert.deepEqual([await primary.smembers('p:destination:bound'), await primary.smembers('p:destination:orphaned')], [['pod-1'], ['dead']])
})

for (const kind of ['redisOptions', 'a shared client'] as const) {
  test(`reconnectOnError of ${kind} hears of READONLY, from a claim's script too, and what it returns is honoured (G26)`, async t => {
    const { replica, direct } = await startReplica(t)
    const heard: string[] = []
    // 2: reconnect and send the command again. By then the store behind the name is the new primary.
    const reconnectOnError = (error: Error): 2 | false => {
      if (!error.message.startsWith('READONLY')) return false
      heard.push(error.message)
      return 2
    }
    const scene = setScene(t, replica.url, 'p')
    const client = kind === 'a shared client' ? new Redis(replica.url, { reconnectOnError }) : null
    client?.on('error', () => {})
    t.after(() => client?.disconnect())
    const registry = scene.registry({ storeTimeout: 20_000, ...(client === null ? { redisOptions: { reconnectOnError } } : { redis: client }) })
    await registry.listLiveMembers()
    const heardBefore = heard.length

    const claiming = registry.resolveDestination('new', { claimOnMiss: true })
    const reassigning = registry.resolveDestination('orphaned', { reassignOrphans: true })
    await until(() => heard.length >= heardBefore + 2, 'both writes were refused')
    await direct.call('REPLICAOF', 'NO', 'ONE')
    const resolved = await within(20_000, 'the writes', Promise.all([claiming, reassigning]))

    assert.deepEqual(resolved.map(each => [each?.memberId, each?.reassigned]), [['pod-1', false], ['pod-1', true]])
    assert.deepEqual([await direct.smembers('p:destination:new'), await direct.smembers('p:destination:orphaned')], [['pod-1'], ['pod-1']])
  })
}
