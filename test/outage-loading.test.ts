import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { RedisOptions } from 'iovalkey'
import { Redis } from 'iovalkey'
import { allFail, everyRegistryCall, failure } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import type { OwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const storeTimeout = 500

/** A store that takes 4 ms to load each of its 15,000 keys: it is LOADING for a minute, answers so meanwhile, and ends at once when it is told. */
async function startSlowLoader (t: TestContext): Promise<{ store: OwnStore, scene: Scene }> {
  const store = await startOwnStore(t, ['--key-load-delay', '4000', '--loading-process-events-interval-bytes', '1024'])
  const scene = setScene(t, store.url)
  await scene.rawMember('pod-1', {}, 600)
  await scene.rawMember('pod-2', {}, 600)
  await scene.raw.sadd(scene.key('destination', 'tenant-1'), 'pod-1')
  await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-1', destinationId: 'tenant-1' })
  const filling = scene.raw.pipeline()
  for (let i = 0; i < 15_000; i++) filling.set(`filler-${i}`, 'x'.repeat(200))
  await filling.exec()
  return { store, scene }
}

async function onLoading<T> (url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { enableReadyCheck: false, enableOfflineQueue: true, retryStrategy: () => null, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  try {
    return await use(client)
  } finally {
    client.disconnect()
  }
}

async function isLoading (url: string): Promise<boolean> {
  return await onLoading(url, client => client.ping().then(() => false, (error: Error) => error.message.startsWith('LOADING')))
}

/** Has the rest of the data loaded at once. */
async function endLoading (url: string): Promise<void> {
  await onLoading(url, client => client.config('SET', 'key-load-delay', '0'))
}

const readyChecks: [string, RedisOptions][] = [
  ['with the client\'s ready check', {}],
  ['without the client\'s ready check', { enableReadyCheck: false }]
]

for (const [name, redisOptions] of readyChecks) {
  test(`a store that loads its data, ${name}: calls reject as unavailable, nothing is "not found" nor bound anew (G23)`, async t => {
    const { store, scene } = await startSlowLoader(t)
    const registry = scene.registry({ memberIndex: true, storeTimeout, cache: false, redisOptions })
    const member = await scene.liveMember('pod-3', { ttl: 600, storeTimeout, redisOptions })
    await registry.listLiveMembers() // a claim is sent at once from now on
    await scene.raw.save()

    await store.kill()
    const started = store.start()
    await until(() => isLoading(store.url), 'the store loads')
    // Of another destination: a write that was given up may still be delivered.
    const errors = await allFail(storeTimeout, { ...everyRegistryCall(registry, 'other'), register: () => member.register() }, 'PLT_COORDINATOR_UNAVAILABLE')
    const beat = await member.heartbeat()
    const wasLoading = await isLoading(store.url)
    await endLoading(store.url)
    await started

    assert.ok(wasLoading, 'all of it happened while the store was loading')
    assert.equal(beat, false)
    for (const [method, error] of Object.entries(errors)) assert.equal(error.statusCode, 503, method)
    if (redisOptions.enableReadyCheck === false) assert.match(errors.hasBinding?.message ?? '', /it answered LOADING/)
    await until(() => registry.resolveDestination('tenant-1').then(() => true, () => false), 'the registry reads again')
    assert.equal((await registry.resolveDestination('tenant-1', { claimOnMiss: true, reassignOrphans: true }))?.memberId, 'pod-1')
    assert.equal((await registry.resolveLock('lock-1'))?.memberId, 'pod-1')
    assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
  })
}

test('a store that restarts with its data while 50 callers claim: the binding of before is the answer of all that get one (G23)', async t => {
  const { store, scene } = await startSlowLoader(t)
  const registry = scene.registry({ storeTimeout: 200, cache: false })
  await registry.listLiveMembers()
  await scene.raw.save()
  const answers = new Set<string | undefined>()
  let failures = 0
  const over = new AbortController()
  const callers = Array.from({ length: 50 }, async () => {
    while (!over.signal.aborted) {
      await registry.resolveDestination('tenant-1', { claimOnMiss: true, reassignOrphans: true }).then(
        resolved => { answers.add(resolved?.memberId) },
        (error: { code?: string }) => {
          failures++
          assert.equal(error.code, 'PLT_COORDINATOR_UNAVAILABLE')
        }
      )
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  })

  await store.kill()
  const started = store.start()
  await until(() => isLoading(store.url), 'the store loads')
  const before = failures
  await until(() => failures >= before + 50, 'callers meet a store that loads')
  assert.ok(await isLoading(store.url))
  await endLoading(store.url)
  await started
  await until(() => registry.resolveDestination('tenant-1').then(() => true, () => false), 'the registry reads again')
  over.abort()
  await Promise.all(callers)

  assert.deepEqual([...answers], ['pod-1'])
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
})

test('a store that answers NOREPLICAS is unavailable, one that answers WRONGTYPE refuses: nothing is written either way (G23)', async t => {
  const { scene } = await startSlowLoader(t)
  const registry = scene.registry({ storeTimeout })
  await registry.listLiveMembers()

  // min-replicas-to-write without a replica: writes are answered NOREPLICAS.
  await scene.raw.config('SET', 'min-replicas-to-write', '1')
  const error = await failure(storeTimeout, 'claim', registry.resolveDestination('tenant-2', { claimOnMiss: true }), 'PLT_COORDINATOR_UNAVAILABLE')
  assert.match(error.message, /it answered NOREPLICAS/)
  assert.equal((await registry.resolveDestination('tenant-1'))?.memberId, 'pod-1')
  await scene.raw.config('SET', 'min-replicas-to-write', '0')
  assert.deepEqual(await scene.pods('tenant-2'), [])

  await scene.raw.set(scene.key('destination', 'tenant-3'), 'a string')
  await failure(storeTimeout, 'resolve', registry.resolveDestination('tenant-3'), 'PLT_COORDINATOR_STORE_REFUSED')
  await failure(storeTimeout, 'claim', registry.resolveDestination('tenant-3', { claimOnMiss: true }), 'PLT_COORDINATOR_STORE_REFUSED')
  assert.equal(await scene.raw.get(scene.key('destination', 'tenant-3')), 'a string')
})
