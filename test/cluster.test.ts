import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { Cluster } from 'iovalkey'
import { isCoordinatorError, Member, Registry } from '../src/index.ts'
import type { CoordinatorError, Member as MemberType, Registry as RegistryType } from '../src/index.ts'
import { allFail, everyMemberCall, everyRegistryCall, failure } from './support/every-call.ts'
import { startOwnCluster } from './support/own-cluster.ts'
import { findFreePort } from '../services/free-port.ts'

const address = 'http://pod.test:3000'

function closing<T extends Registry | Member> (t: TestContext, instance: T): T {
  t.after(() => instance.close())
  return instance
}

for (const [keyPrefix, clientPrefix] of [['myservice', ''], ['{}myservice', ''], ['my{service', ''], ['myservice', 'app:'], ['{}{tag}', ''], ['}tag{', '']] as const) {
  test(`a Cluster client with the keyPrefix '${keyPrefix}' (and '${clientPrefix}' of its own) is refused at construction, in words that name the hash tag (G27)`, async t => {
    const client = new Cluster([{ host: '127.0.0.1', port: await findFreePort() }], { lazyConnect: true, keyPrefix: clientPrefix })
    t.after(() => client.disconnect())

    for (const construct of [
      () => new Registry({ redis: client, keyPrefix }),
      () => new Member({ redis: client, keyPrefix, memberId: 'pod-1', address })
    ]) {
      assert.throws(construct, error => isCoordinatorError(error, 'PLT_COORDINATOR_NO_HASH_TAG') && /hash tag/.test(error.message))
    }
    assert.equal(client.listenerCount('error'), 0)
    assert.equal(client.status, 'wait')
  })
}

test('a Cluster client without a keyPrefix is refused at construction: the default one has no hash tag (G27)', async t => {
  const client = new Cluster([{ host: '127.0.0.1', port: await findFreePort() }], { lazyConnect: true })
  t.after(() => client.disconnect())

  assert.throws(() => new Registry({ redis: client }), { code: 'PLT_COORDINATOR_NO_HASH_TAG' })
})

/** Uses every method of a registry and its members once, and returns what they answered. */
async function useAll (registry: RegistryType, pods: [MemberType, MemberType]): Promise<Record<string, unknown>> {
  for (const pod of pods) await pod.register()
  const claims = await Promise.all(Array.from({ length: 50 }, () => registry.resolveDestination('tenant-1', { claimOnMiss: true })))
  const owner = claims[0]?.memberId
  const [mine, other] = owner === 'pod-1' ? pods : [pods[1], pods[0]]
  await mine.registerLock('lock-1', 'tenant-1')
  const answers: Record<string, unknown> = {
    owners: new Set(claims.map(each => each?.memberId)).size,
    live: (await registry.listLiveMembers()).length,
    peers: (await mine.listPeerLoad()).length,
    pick: await registry.pickMember() !== null,
    lock: (await registry.resolveLock('lock-1'))?.memberId === owner,
    added: await registry.addPodToDestination('tenant-1', other.memberId),
    owned: [await registry.listOwned('pod-1'), await pods[1].listOwned()],
    hasBinding: await registry.hasBinding('tenant-1'),
    binding: (await registry.readBinding('tenant-1')).length,
    removed: await registry.removePodFromDestination('tenant-1', other.memberId),
    beat: await mine.heartbeat(),
    draining: await other.setDraining(false),
    unlocked: await mine.unregisterLock('lock-1'),
    left: await mine.deregister()
  }
  const reassigned = await registry.resolveDestination('tenant-1', { reassignOrphans: true })
  return { ...answers, reassigned: [reassigned?.memberId === other.memberId, reassigned?.reassigned, reassigned?.previous?.length] }
}

const expected = {
  owners: 1,
  live: 2,
  peers: 2,
  pick: true,
  lock: true,
  added: true,
  owned: [['tenant-1'], ['tenant-1']],
  hasBinding: true,
  binding: 2,
  removed: true,
  beat: true,
  draining: true,
  unlocked: true,
  left: true,
  reassigned: [true, true, 1]
}

test('a real cluster: with a hash tag every method works, and all keys lie on one node (G27)', async t => {
  const cluster = await startOwnCluster(t)

  for (const [keyPrefix, clientPrefix] of [['{myservice}', ''], ['inner', '{outer}:'], ['a{b}c', 'app:']] as const) {
    const client = cluster.client({ keyPrefix: clientPrefix })
    const options = { redis: client, keyPrefix, memberIndex: true }
    const registry = closing(t, new Registry(options))
    const pods = [1, 2].map(i => closing(t, new Member({ ...options, memberId: `pod-${i}`, address }))) as [Member, Member]

    assert.deepEqual(await useAll(registry, pods), expected, keyPrefix)

    const names = (await cluster.keys()).filter(name => name.startsWith(`${clientPrefix}${keyPrefix}:`))
    const base = `${clientPrefix}${keyPrefix}`
    const left = (await registry.listLiveMembers())[0]?.memberId
    assert.deepEqual(names, ['destination:tenant-1', 'features', `member:${left}`, 'members', `owned:${left}`].map(name => `${base}:${name}`))
    const holders = await Promise.all(cluster.nodes.map(async node => (await node.keys('*')).filter(name => name.startsWith(`${base}:`)).length))
    assert.equal(holders.filter(count => count > 0).length, 1)
    await Promise.all([registry, ...pods].map(each => each.close()))
    assert.equal(client.status, 'ready')
    assert.equal(client.listenerCount('error'), 1, 'only the listener of the test is left')
  }
})

test('a real cluster behind a plain URL: the first call fails in words that name the hash tag, with a hash tag on another node too (G28)', async t => {
  const cluster = await startOwnCluster(t)
  const codes = new Map<number, string>()

  for (const port of cluster.ports) {
    const redis = `redis://127.0.0.1:${port}`
    const options = { redis, keyPrefix: 'myservice', memberIndex: true }
    for (const call of [
      () => closing(t, new Registry(options)).resolveDestination('tenant-1', { claimOnMiss: true }),
      () => closing(t, new Registry(options)).resolveDestination('tenant-1'),
      () => closing(t, new Registry(options)).listLiveMembers(),
      () => closing(t, new Registry(options)).addPodToDestination('tenant-1', 'pod-1'),
      () => closing(t, new Registry(options)).resolveLock('lock-1'),
      () => closing(t, new Member({ ...options, memberId: 'pod-1', address })).register()
    ]) {
      const error = await failure(2000, String(call), call(), 'PLT_COORDINATOR_NO_HASH_TAG')
      assert.match(error.message, /hash tag, such as '\{myservice\}'/)
      assert.doesNotMatch(error.message, /127\.0\.0\.1|\d{4}/, 'no inner address in what may be sent to a client')
      assert.equal(error.statusCode, 500)
    }
    const tagged = closing(t, new Registry({ redis, keyPrefix: '{myservice}' }))
    codes.set(port, await tagged.listLiveMembers().then(() => 'listed', (error: CoordinatorError) => {
      // MOVED names the node: it stays in the cause, for the log.
      assert.doesNotMatch(error.message, /127\.0\.0\.1|\d{4}|MOVED/)
      assert.match(String(error.cause), /MOVED \d+ 127\.0\.0\.1:\d+/)
      return error.code
    }))
  }

  assert.deepEqual([...codes.values()].sort(), ['PLT_COORDINATOR_NO_HASH_TAG', 'PLT_COORDINATOR_NO_HASH_TAG', 'listed'])
  assert.deepEqual((await cluster.keys()).filter(name => !name.endsWith('service}:features') && !name.endsWith('service:features')), [])
})

test('a cluster that is not there: every call fails with a code within storeTimeout (G27)', async t => {
  const client = new Cluster([{ host: '127.0.0.1', port: await findFreePort() }])
  client.on('error', () => {})
  t.after(() => client.disconnect())
  const options = { redis: client, keyPrefix: '{myservice}', memberIndex: true, storeTimeout: 400 }
  const registry = closing(t, new Registry(options))

  await allFail(400, everyRegistryCall(registry), 'PLT_COORDINATOR_UNAVAILABLE')
  const member = closing(t, new Member({ ...options, memberId: 'pod-1', address }))
  await failure(400, 'register', member.register(), 'PLT_COORDINATOR_UNAVAILABLE')
  await failure(400, 'listPeerLoad', everyMemberCall(member).listPeerLoad?.() ?? Promise.resolve(), 'PLT_COORDINATOR_UNAVAILABLE')
})

test('a real cluster that lost its slots answers CLUSTERDOWN: unavailable, not "not found", for a Cluster client and a URL (G27)', async t => {
  const cluster = await startOwnCluster(t)
  const client = cluster.client({ clusterRetryStrategy: () => null, maxRedirections: 1 })
  const registry = closing(t, new Registry({ redis: client, keyPrefix: '{myservice}', storeTimeout: 2000 }))
  assert.equal(await registry.resolveDestination('tenant-1'), null)

  await Promise.all(cluster.nodes.map(node => node.call('CLUSTER', 'DELSLOTSRANGE', '0', '16383')))

  const error = await failure(2000, 'resolveDestination', registry.resolveDestination('tenant-1'), 'PLT_COORDINATOR_UNAVAILABLE')
  assert.equal(error.statusCode, 503)
  const direct = closing(t, new Registry({ redis: `redis://127.0.0.1:${cluster.ports[0]}`, keyPrefix: '{myservice}' }))
  const answer = await failure(2000, 'resolveDestination', direct.resolveDestination('tenant-1'), 'PLT_COORDINATOR_UNAVAILABLE')
  assert.match(answer.message, /it answered CLUSTERDOWN/)
})
