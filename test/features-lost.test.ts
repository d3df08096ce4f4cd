import assert from 'node:assert/strict'
import test from 'node:test'
import type { Member } from '../src/index.ts'
import { isCoordinatorError } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'

const mismatch = 'PLT_COORDINATOR_FEATURE_MISMATCH'
const isMismatch = (error: unknown): boolean => isCoordinatorError(error, mismatch)

const restores: [name: string, restore: (member: Member) => Promise<boolean>][] = [
  ['heartbeat()', member => member.heartbeat()], ['setDraining()', member => member.setDraining(true)]
]

for (const [name, restore] of restores) {
  test(`data loss: the ${name} that writes the record again writes the features again, so that an index stays exact (G36, I4)`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url)
    const told: string[] = []
    const member = await scene.liveMember('pod-1', { memberIndex: true, onError: error => { told.push(error.code) } })
    await scene.raw.flushall()

    assert.equal(await restore(member), true)

    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '1' })
    assert.deepEqual(told, [])
    const unaware = scene.registry({ memberIndex: false, strictFeatures: true })
    await assert.rejects(unaware.resolveDestination('tenant-1', { claimOnMiss: true }), isMismatch)
    assert.deepEqual(await scene.pods('tenant-1'), [])
  })

  test(`data loss: the ${name} that finds other features recorded meanwhile reports them once, and leaves them`, async t => {
    const scene = setScene(t)
    const told: string[] = []
    const member = await scene.liveMember('pod-1', { memberIndex: true, onError: error => { told.push(error.code) } })
    await scene.raw.del(scene.key('member', 'pod-1'))
    await scene.raw.hset(scene.key('features'), 'memberIndex', '0')

    assert.equal(await restore(member), true)
    assert.equal(await restore(member), true)

    assert.deepEqual(told, [mismatch])
    assert.deepEqual(await scene.raw.hgetall(scene.key('features')), { memberIndex: '0' })
  })
}

for (const strictFeatures of [false, true]) {
  test(`data loss: a registry (strictFeatures ${strictFeatures}) looks at the features again after an outage, and tells a difference (G36, I4)`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url)
    const told: string[] = []
    const registry = scene.registry({ strictFeatures, onError: error => { told.push(error.code) }, storeTimeout: 500 })
    assert.equal(await registry.hasBinding('tenant-1'), false)
    await until(async () => await scene.raw.hget(scene.key('features'), 'memberIndex') === '0', 'the features are recorded')
    await store.kill()
    await until(() => registry.hasBinding('tenant-1').then(() => false, error => isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')), 'the store is found away')
    await store.start()
    await until(() => scene.raw.hset(scene.key('features'), 'memberIndex', '1').then(() => true, () => false), 'others are there first')

    const outcome = async (): Promise<unknown> => await registry.hasBinding('tenant-1').catch((error: unknown) => isCoordinatorError(error) ? error.code : error)
    await until(async () => await outcome() !== 'PLT_COORDINATOR_UNAVAILABLE', 'the store is found again')

    if (strictFeatures) {
      for (let call = 0; call < 3; call++) assert.equal(await outcome(), mismatch)
      assert.ok(!told.includes(mismatch), 'who is told by an error is not told twice')
    } else {
      await until(() => told.includes(mismatch), 'the difference is reported')
      for (let call = 0; call < 20; call++) assert.equal(await outcome(), false)
      assert.equal(told.filter(code => code === mismatch).length, 1)
    }
  })
}

test('data loss: a registry records its features again after an outage that took them', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const registry = scene.registry({ memberIndex: true, storeTimeout: 500 })
  await registry.hasBinding('tenant-1')
  await until(async () => await scene.raw.hget(scene.key('features'), 'memberIndex') === '1', 'the features are recorded')
  await new Promise(resolve => setImmediate(resolve)) // the registry has heard of it
  await store.kill()
  await until(() => registry.hasBinding('tenant-1').then(() => false, () => true), 'the store is found away')
  await store.start()

  await until(async () => {
    await registry.hasBinding('tenant-1').catch(() => {})
    return await scene.raw.hget(scene.key('features'), 'memberIndex').catch(() => null) === '1'
  }, 'the features are recorded')
})

test('onError: does not hear of calls that failed and told their caller so, of none twice (G22)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const told: string[] = []
  await scene.raw.ping()
  // On a borrowed connection that stands: nothing but the calls can fail.
  const registry = scene.registry({ redis: scene.raw, storeTimeout: 100, onError: error => { told.push(error.message) } })
  store.freeze()

  for (let call = 0; call < 5; call++) await assert.rejects(registry.resolveDestination(`tenant-${call}`), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
  await registry.close()

  assert.deepEqual(told, [])
})

test('pending: bindings made after a setDraining() wrote the lost record again are not taken for counted ones by the next beat', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { ttl: 600 })
  const registry = scene.registry({ cache: false, strategy: 'least-loaded' })
  const claim = async (name: string, count: number): Promise<void> => {
    for (let at = 0; at < count; at++) assert.equal((await registry.resolveDestination(`${name}-${at}`, { claimOnMiss: true }))?.memberId, 'pod-1')
  }
  const pending = async (): Promise<string | null> => await scene.raw.hget(scene.key('member', 'pod-1'), 'pending')
  await claim('before', 50)
  assert.equal(await member.heartbeat(), true)
  await scene.raw.flushall()
  assert.equal(await member.setDraining(false), true)
  await claim('after', 10)
  assert.equal(await pending(), '10')

  assert.equal(await member.heartbeat(), true)
  assert.equal(await pending(), '10', 'the load that this beat published was read before its reply told of them')
  assert.equal(await member.heartbeat(), true)
  assert.equal(await pending(), '0')
})
