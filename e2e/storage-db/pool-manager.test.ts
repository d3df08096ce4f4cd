import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createPool } from '../../examples/storage-db/src/database.ts'
import { PoolManager } from '../../examples/storage-db/src/pool-manager.ts'
import { readPodSettings } from '../../examples/storage-db/src/settings.ts'
import type { Lease } from '../../examples/storage-db/src/tenant-pool.ts'
import { until } from '../../test/support/store.ts'
import { atClose } from '../support/closing.ts'
import { Scene } from './support/scene.ts'

const memberId = 'pools'

interface Pools {
  readonly scene: Scene
  readonly pools: PoolManager
  /** Tenants that were reported as saturated, in order. */
  readonly saturated: string[]
  /** Errors of idle connections. */
  readonly errors: Error[]
  /** Moves the clock of the pools. */
  readonly advance: (time: number) => void
  readonly acquire: (tenantId: string) => Promise<Lease>
}

const giveBack = (...leases: Lease[]): void => leases.forEach(lease => lease.release(false))

function openPools (t: TestContext, { max = 2, saturationWait = 50, poolIdle = 60_000 } = {}): Pools {
  const scene = new Scene(t)
  const { database } = readPodSettings(scene.environment(memberId, { CONNECT_TIMEOUT: 1500 }))
  const [saturated, errors]: [string[], Error[]] = [[], []]
  let now = 0
  const pools = new PoolManager({
    createPool: () => createPool(database, max, 60_000, error => errors.push(error)),
    poolIdle,
    saturationWait,
    onSaturated: tenantId => saturated.push(tenantId),
    now: () => now
  })
  const held = new Set<Lease>()
  atClose(t, async () => {
    for (const lease of held) lease.release(true) // of a test that failed: the close would wait for them
    await pools.close()
  })
  return {
    scene,
    pools,
    saturated,
    errors,
    advance: time => { now += time },
    async acquire (tenantId) {
      const { client, release } = await pools.get(tenantId).acquire()
      const lease: Lease = {
        client,
        release (isBroken) {
          held.delete(lease)
          release(isBroken)
        }
      }
      held.add(lease)
      return lease
    }
  }
}

test('PoolManager: opens connections as they are needed and counts them over all tenants, as PostgreSQL does', async t => {
  const { scene, pools, acquire } = openPools(t)
  assert.equal(pools.openCount, 0)
  const leases = [await acquire('a'), await acquire('a'), await acquire('b')]
  assert.equal(pools.openCount, 3)
  assert.equal(await scene.countConnections(memberId), 3)
  giveBack(...leases)
  assert.equal(pools.openCount, 3)
  await acquire('a')
  assert.equal(pools.openCount, 3)
})

test('PoolManager: a connection that comes back broken is closed', async t => {
  const { pools, acquire } = openPools(t)
  const lease = await acquire('a')
  lease.release(true)
  assert.equal(pools.openCount, 0)
})

test('PoolManager: a tenant is saturated when a request has waited, with all connections in use, for the set time, and not before', async t => {
  const { pools, saturated, acquire } = openPools(t)
  const pool = pools.get('a')
  const leases = [await acquire('a'), await acquire('a')]
  assert.deepEqual([saturated, pool.look().wasSaturated], [[], false])
  const waiting = acquire('a')
  giveBack(...leases.splice(0, 1))
  leases.push(await waiting)
  assert.deepEqual([saturated, pool.look().wasSaturated], [[], false], 'a short wait is none')

  const another = acquire('a')
  await until(async () => saturated.length >= 2, 'it is told for as long as the request waits')
  assert.deepEqual(new Set(saturated), new Set(['a']))
  assert.equal(pool.look().wasSaturated, true)
  giveBack(...leases)
  giveBack(await another)
  const told = saturated.length
  giveBack(await acquire('b'))
  assert.deepEqual([saturated.length, pool.look().wasSaturated], [told, false])
})

test('PoolManager: a request that gets no connection in time is told that the tenant is overloaded', async t => {
  const { acquire } = openPools(t, { max: 1 })
  const lease = await acquire('a')
  await assert.rejects(acquire('a'), { code: 'STORAGE_OVERLOADED', statusCode: 503, retryAfter: 1 })
  giveBack(lease)
  giveBack(await acquire('a'))
})

test('PoolManager: look tells which part of the connections was in use since the last look', async t => {
  const { pools, advance, acquire } = openPools(t, { max: 4 })
  assert.deepEqual(pools.look('a'), { use: 0, wasSaturated: false })
  const first = await acquire('a')
  advance(100)
  const second = await acquire('a')
  advance(100)
  giveBack(first, second)
  advance(100)
  assert.equal(pools.look('a').use, (1 * 100 + 2 * 100) / (4 * 300))
  advance(100)
  assert.equal(pools.look('a').use, 0)
})

test('PoolManager: closes the pool of a tenant that nobody used for the set time, and of no other', async t => {
  const { scene, pools, advance, acquire } = openPools(t, { poolIdle: 1000 })
  giveBack(await acquire('unused'), await acquire('unused'))
  const held = await acquire('held')
  advance(600)
  giveBack(await acquire('recent'))
  advance(500)
  pools.closeUnused()
  assert.deepEqual([pools.tenantCount, pools.openCount], [2, 2])
  await until(async () => await scene.countConnections(memberId) === 2, 'PostgreSQL sees them close')
  const { rows } = await held.client.query('SELECT 1 AS one')
  assert.deepEqual(rows, [{ one: 1 }])
  giveBack(held, await acquire('unused'))
  assert.equal(pools.tenantCount, 3)
})

test('PoolManager: idle connections that PostgreSQL closes are dropped, reported, and replaced when needed', async t => {
  const { scene, pools, errors, acquire } = openPools(t)
  giveBack(await acquire('a'), await acquire('a'))
  await until(async () => await scene.countConnections(memberId, "state = 'idle'") > 0, 'connections are idle')
  const open = pools.openCount
  await scene.breakConnections(memberId)
  await until(async () => pools.openCount === 0, 'they are dropped')
  assert.equal(errors.length, open)
  const lease = await acquire('a')
  assert.equal((await lease.client.query('SELECT 1 AS one')).rows[0].one, 1)
  giveBack(lease)
})

test('PoolManager: a connection that PostgreSQL closes while it is in use fails its statement, and nothing else', async t => {
  const { scene, pools, acquire } = openPools(t)
  const lease = await acquire('a')
  const statement = assert.rejects(lease.client.query('SELECT pg_sleep(60)'))
  await until(async () => await scene.breakConnections(memberId, "state = 'active'") === 1, 'the statement runs')
  await statement
  lease.release(true)
  assert.equal(pools.openCount, 0)
})

test('PoolManager: close resolves when PostgreSQL has seen the last connection go', async t => {
  const { scene, pools, acquire } = openPools(t)
  giveBack(await acquire('a'), await acquire('b'))
  await pools.close()
  assert.equal(pools.tenantCount, 0)
  await until(async () => await scene.countConnections(memberId) === 0, 'they are gone')
})
