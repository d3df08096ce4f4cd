import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { setScene, storeUrl, until } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

test('a shared client serves a registry and a member, stays open, and no listener is left on it (G08)', async t => {
  const scene = setScene(t)
  const client = new Redis(storeUrl)
  t.after(() => client.disconnect())
  await once(client, 'ready')
  const before = countListeners(client)
  const member = await scene.liveMember('pod-1', { redis: client })
  const registry = scene.registry({ redis: client })
  assert.equal((await registry.resolveDestination('d', both))?.memberId, 'pod-1')

  await registry.close()
  assert.equal(await client.ping(), 'PONG')
  assert.equal(await member.heartbeat(), true)
  await member.close()

  assert.equal(await client.ping(), 'PONG')
  assert.equal(client.status, 'ready')
  assert.deepEqual(countListeners(client), before)
})

test('30 registries in turn, and 30 at once, on one client: listeners do not pile up, and the client stays open (G08)', async t => {
  const scene = setScene(t)
  const client = new Redis(storeUrl)
  t.after(() => client.disconnect())
  await once(client, 'ready')
  await scene.liveMember('pod-1')
  const warnings: Error[] = []
  const hear = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', hear)
  t.after(() => process.off('warning', hear))
  const before = countListeners(client)

  for (let i = 0; i < 30; i++) {
    const registry = scene.registry({ redis: client })
    assert.equal((await registry.resolveDestination(`d${i}`, both))?.memberId, 'pod-1')
    await registry.close()
    assert.deepEqual(countListeners(client), before)
  }
  const registries = Array.from({ length: 30 }, () => scene.registry({ redis: client }))
  await Promise.all(registries.map((registry, i) => registry.resolveDestination(`e${i}`, both)))
  assert.ok(client.listenerCount('error') <= 1 + (before.error ?? 0))
  await Promise.all(registries.map(registry => registry.close()))

  assert.deepEqual(countListeners(client), before)
  assert.deepEqual(warnings, [])
  assert.equal(await client.ping(), 'PONG')
})

test('a shared client is left as it was: no command of ours is defined on it, and its keyPrefix comes before ours', async t => {
  const scene = setScene(t)
  const client = new Redis(storeUrl, { keyPrefix: `${scene.keyPrefix}:` })
  t.after(() => client.disconnect())
  await once(client, 'ready')
  const names = Object.keys(client).sort()
  await scene.liveMember('pod-1', { redis: client, keyPrefix: 'inner', memberIndex: true })
  const registry = scene.registry({ redis: client, keyPrefix: 'inner', memberIndex: true })

  assert.equal((await registry.resolveDestination('d', both))?.memberId, 'pod-1')
  assert.equal(await registry.hasBinding('d'), true)
  assert.deepEqual(await registry.listOwned('pod-1'), ['d'])

  assert.deepEqual(Object.keys(client).sort(), names)
  assert.deepEqual(await scene.keys(), ['inner:destination:d', 'inner:features', 'inner:member:pod-1', 'inner:members', 'inner:owned:pod-1'])
})

test('redisOptions reach the client that is opened for a URL, and another database keeps its own keys', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { redisOptions: { db: 3 } })
  const registry = scene.registry({ redisOptions: { db: 3, connectionName: scene.keyPrefix } })
  assert.equal((await registry.resolveDestination('d', both))?.memberId, 'pod-1')

  assert.deepEqual(await scene.keys(), [])
  const clients = String(await scene.raw.client('LIST'))
  assert.match(clients, new RegExp(`name=${scene.keyPrefix} .* db=3 `))
  await scene.raw.select(3)
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})

test('the keyPrefix is coordinator by default', async t => {
  const scene = setScene(t, storeUrl, `coordinator:destination:${Math.random()}`)
  const registry = scene.registry({ keyPrefix: undefined })
  const destinationId = scene.keyPrefix.slice('coordinator:destination:'.length)
  await scene.raw.sadd(scene.keyPrefix, 'dead-1')
  t.after(async () => {
    const raw = new Redis(storeUrl)
    await raw.del(scene.keyPrefix)
    raw.disconnect()
  })

  assert.equal(await registry.hasBinding(destinationId), true)
  assert.equal(await registry.deregisterDestination(destinationId), true)
  assert.equal(await scene.raw.exists(scene.keyPrefix), 0)
})

test('all pods and registries restart at once: orphans move by themselves, and nothing is left to clean by hand (G47)', async t => {
  const scene = setScene(t)
  const index = { memberIndex: true }
  const ids = Array.from({ length: 50 }, (_, i) => `d${i}`)
  const old = [scene.registry(index), scene.registry(index)]
  for (let i = 0; i < 3; i++) await scene.liveMember(`old-${i}`, index)
  await Promise.all(ids.map((id, i) => old[i % 2]?.resolveDestination(id, both)))
  await Promise.all(old.map(registry => registry.close()))
  for (let i = 0; i < 3; i++) await scene.raw.del(scene.key('member', `old-${i}`)) // killed: their records expired

  for (let i = 0; i < 3; i++) await scene.liveMember(`new-${i}`, index)
  const registries = [scene.registry(index), scene.registry(index)]
  const answers = await Promise.all(registries.flatMap(registry => ids.map(id => registry.resolveDestination(id, both))))

  for (const [i, id] of ids.entries()) {
    const pods = await scene.pods(id)
    assert.equal(pods.length, 1)
    assert.match(pods[0] as string, /^new-/)
    assert.deepEqual([answers[i]?.memberId, answers[i + 50]?.memberId], [pods[0], pods[0]])
    assert.equal([answers[i], answers[i + 50]].filter(answer => answer?.reassigned).length, 1)
  }
  await Promise.all(registries.map(registry => registry.close()))
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['new-0', 'new-1', 'new-2'])
  assert.deepEqual((await scene.keys()).filter(key => key.includes('old-')), [])
})

function countListeners (client: Redis): Record<string, number> {
  return Object.fromEntries(client.eventNames().map(name => [String(name), client.listenerCount(name)]))
}

for (const isOwn of [true, false]) {
  test(`a client with stringNumbers (${isOwn ? 'own' : 'shared'}) answers as any other`, async t => {
    const scene = setScene(t)
    const client = new Redis(storeUrl, { stringNumbers: true })
    t.after(() => client.disconnect())
    const store = isOwn ? { redisOptions: { stringNumbers: true } } : { redis: client }
    const registry = scene.registry({ ...store, memberIndex: true, cache: false })
    const member = await scene.liveMember('pod-1', { ...store, memberIndex: true })
    await scene.raw.sadd(scene.key('members'), 'dead-1')

    assert.deepEqual(await registry.resolveDestination('d', both), { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
    assert.deepEqual([await registry.hasBinding('d'), await registry.hasBinding('none')], [true, false])
    assert.equal((await registry.resolveDestination('d'))?.memberId, 'pod-1')
    assert.deepEqual(await registry.listLiveMembers(), [{ memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 0, draining: false }])
    await until(async () => await scene.raw.sismember(scene.key('members'), 'dead-1') === 0, 'the dead one is pruned')
    assert.deepEqual((await registry.readBinding('d')).map(({ memberId, isLive }) => [memberId, isLive]), [['pod-1', true]])
    await member.registerLock('lock-1', 'd')
    assert.deepEqual([await member.unregisterLock('lock-1'), await member.unregisterLock('lock-1')], [true, false])
    assert.deepEqual([await member.heartbeat(), await member.setDraining(true)], [true, true])
    assert.deepEqual([await member.listOwned(), await registry.listOwned('pod-1')], [['d'], ['d']])
    assert.deepEqual([await registry.removePodFromDestination('d', 'pod-1'), await registry.removePodFromDestination('d', 'pod-1')], [true, false])
    assert.equal(await member.setDraining(false), true)
    assert.equal(await registry.addPodToDestination('d', 'pod-1'), true)
    assert.deepEqual([await registry.deregisterDestination('d'), await registry.deregisterDestination('d')], [true, false])
    assert.deepEqual([await member.deregister(), await member.deregister()], [true, false])
    assert.deepEqual(await scene.keys(), ['features'])
  })
}
