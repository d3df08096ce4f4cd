import assert from 'node:assert/strict'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { isCoordinatorError } from '../src/index.ts'
import type { CoordinatorError } from '../src/index.ts'
import { allFail, everyMemberCall, everyRegistryCall, failure, marginMs, within, writes } from './support/every-call.ts'
import { findFreePort } from '../services/free-port.ts'
import { startOwnStore } from './support/own-store.ts'
import { startSilentServer } from './support/silence.ts'
import { setScene, until } from './support/store.ts'

// Default options: the bound is storeTimeout, 2,000 ms.
const boundMs = 2000

test('a store that refuses connections, default options: every registry call rejects with a 503 code within 2 s (G22)', async t => {
  const scene = setScene(t, `redis://127.0.0.1:${await findFreePort()}`)
  const registry = scene.registry({ memberIndex: true })

  const errors = await allFail(boundMs, everyRegistryCall(registry), 'PLT_COORDINATOR_UNAVAILABLE')

  for (const [name, error] of Object.entries(errors)) {
    assert.equal(error.statusCode, 503, name)
    assert.match(error.message, /^Valkey is not available/, name)
    assert.doesNotMatch(error.message, /outcome/, `${name} was never sent: no connection stood`)
    assert.doesNotMatch(error.message, /127\.0\.0\.1/, 'no inner address in what may be sent to a client')
  }
})

test('a store that refuses connections, default options: every member call rejects with a 503 code within 2 s (G22)', async t => {
  const scene = setScene(t, `redis://127.0.0.1:${await findFreePort()}`)

  for (const name of Object.keys(everyMemberCall(scene.member('pod-1')))) {
    // A member of its own each: writes of one member wait for one another.
    const member = scene.member(`pod-${name}`, { memberIndex: true })
    const registering = member.register()
    const call = name === 'register' ? registering : registering.catch(() => everyMemberCall(member)[name]?.())
    const error = await failure(2 * boundMs, name, call, 'PLT_COORDINATOR_UNAVAILABLE')
    assert.equal(error.statusCode, 503, name)
    assert.doesNotMatch(error.message, /outcome/, `${name} was never sent: no connection stood`)
  }
})

test('a store that refuses connections: heartbeat() resolves to false and deregister() rejects, within 2 s (G22)', async t => {
  const scene = setScene(t, `redis://127.0.0.1:${await findFreePort()}`)
  const reported: CoordinatorError[] = []
  const member = scene.member('pod-1', { onError: error => { reported.push(error) } })
  await failure(boundMs, 'register', member.register(), 'PLT_COORDINATOR_UNAVAILABLE')

  assert.equal(await within(boundMs, 'heartbeat', member.heartbeat()), false)
  await failure(boundMs, 'deregister', member.deregister(), 'PLT_COORDINATOR_UNAVAILABLE')
  assert.ok(reported.some(error => error.code === 'PLT_COORDINATOR_UNAVAILABLE'))
})

test('a store that accepts and never answers: every call rejects within storeTimeout, as no missing thing (G09)', async t => {
  const scene = setScene(t, `redis://127.0.0.1:${await startSilentServer(t)}`)
  const storeTimeout = 300

  await Promise.all([
    allFail(storeTimeout, everyRegistryCall(scene.registry({ memberIndex: true, storeTimeout })), 'PLT_COORDINATOR_UNAVAILABLE'),
    failure(storeTimeout, 'register', scene.member('pod-1', { storeTimeout }).register(), 'PLT_COORDINATOR_UNAVAILABLE'),
    failure(storeTimeout, 'listPeerLoad', scene.member('pod-2', { storeTimeout }).listPeerLoad(), 'PLT_COORDINATOR_UNAVAILABLE')
  ])
})

test('a store that accepts and never answers: the commandTimeout of redisOptions is the bound when it is shorter (G09)', async t => {
  const scene = setScene(t, `redis://127.0.0.1:${await startSilentServer(t)}`)
  const registry = scene.registry({ storeTimeout: 600_000, redisOptions: { commandTimeout: 200 } })

  const error = await failure(200, 'hasBinding', registry.hasBinding('tenant-1'), 'PLT_COORDINATOR_UNAVAILABLE')

  assert.match(error.message, /Command timed out/)
  assert.ok(error.cause instanceof Error)
})

test('a store that comes up after the registry: calls reject until then and succeed afterwards, by themselves (G09)', async t => {
  const store = await startOwnStore(t)
  await store.kill()
  const scene = setScene(t, store.url)
  const registry = scene.registry()
  const member = scene.member('pod-1')
  await failure(boundMs, 'listLiveMembers', registry.listLiveMembers(), 'PLT_COORDINATOR_UNAVAILABLE')
  await failure(boundMs, 'register', member.register(), 'PLT_COORDINATOR_UNAVAILABLE')

  await store.start()
  await until(() => member.heartbeat(), 'the member whose register() failed is registered by a heartbeat')
  await until(() => registry.hasBinding('tenant-1').then(() => true, () => false), 'the registry reads again')

  assert.deepEqual((await registry.listLiveMembers()).map(each => each.memberId), ['pod-1'])
  assert.equal((await registry.resolveDestination('tenant-1', { claimOnMiss: true }))?.memberId, 'pod-1')
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
})

test('a store that goes away: what is cached is still answered, what is not rejects, for 50 callers at once (G22)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.liveMember('pod-1', { ttl: 600 })
  const registry = scene.registry({ storeTimeout: 500, cache: { ttl: 600_000 } })
  const cached = await registry.resolveDestination('cached', { claimOnMiss: true })

  await store.kill()
  const outcomes = await within(500, '50 callers', Promise.allSettled(Array.from({ length: 50 }, (_, i) =>
    registry.resolveDestination(i % 2 === 0 ? 'cached' : `other-${i % 5}`, { claimOnMiss: true }))))

  for (const [i, outcome] of outcomes.entries()) {
    if (i % 2 === 0) assert.deepEqual(outcome, { status: 'fulfilled', value: cached })
    else assert.ok(outcome.status === 'rejected' && isCoordinatorError(outcome.reason, 'PLT_COORDINATOR_UNAVAILABLE'))
  }
})

test('a store that has no connection to spare: calls reject with a code within the bound, and succeed when it has (G22)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.raw.config('SET', 'maxclients', '1')
  const registry = scene.registry()

  const error = await within(boundMs, 'hasBinding', registry.hasBinding('tenant-1').then(() => assert.fail(), (error: unknown) => error))
  assert.ok(isCoordinatorError(error))
  assert.equal(error.statusCode, 503, error.message)

  await scene.raw.config('SET', 'maxclients', '100')
  await until(() => registry.hasBinding('tenant-1').then(() => true, () => false), 'the registry is connected')
})

test('a borrowed client with its default options: calls reject within storeTimeout although the client would wait ten seconds (G22)', async t => {
  const url = `redis://127.0.0.1:${await findFreePort()}`
  const client = new Redis(url)
  t.after(() => client.disconnect())
  const scene = setScene(t, url)
  const started = performance.now()

  const [errors] = await Promise.all([
    allFail(300, everyRegistryCall(scene.registry({ redis: client, memberIndex: true, storeTimeout: 300 })), 'PLT_COORDINATOR_UNAVAILABLE'),
    failure(300, 'register', scene.member('pod-1', { redis: client, storeTimeout: 300 }).register(), 'PLT_COORDINATOR_UNAVAILABLE')
  ])
  assert.ok(performance.now() - started < 300 + marginMs)
  for (const [name, error] of Object.entries(errors)) {
    // Such a client sends what waits in its queue when it is connected. A claim reads the members first, and is not sent when that fails.
    const isUnknown = writes.has(name) && !name.startsWith('resolveDestination')
    assert.equal(/the outcome of the write is unknown/.test(error.message), isUnknown, `${name}: ${error.message}`)
  }
})
