// The stateful pod has no part here: its destinations cannot be fanned out, and it has no locks.

import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { Saturation } from '../support/saturation.ts'
import { startStorageLoad } from '../support/start-load.ts'
import { beginTransaction, NotBegun, readEverywhere } from '../support/storage-transaction.ts'
import type { StorageTransaction } from '../support/storage-transaction.ts'
import { setWorld } from '../support/world.ts'

const poolMax = 6
/** Of them for the transactions of the load; the rest is for those that are looked at. */
const holders = 4
/** Milliseconds coordinators may go by a binding that they have read: so long they may send to a pod that has left. */
const cacheTtl = 500

test('locks across fan-out, storage-db: a transaction stays with its pod while its tenant gains one and loses it, and nothing of it is seen before its commit', async t => {
  const world = await setWorld(t, {
    kind: 'storage-db',
    // So long that no binding changes for another reason, and no transaction ends by itself.
    ttl: 30,
    heartbeat: 200,
    cacheTtl,
    requestTimeout: 15_000,
    podEnv: {
      CONNECT_TIMEOUT: '10000',
      STATEMENT_TIMEOUT: '10000',
      TRANSACTION_IDLE: '120000',
      TRANSACTION_LIFE: '120000',
      POOL_MAX: String(poolMax),
      TRANSACTIONS_PER_TENANT: String(poolMax),
      FAN_OUT_WAIT: '20',
      FAN_IN_CALM: '3000',
      MAX_PODS_PER_TENANT: '2'
    }
  })
  const load = await startStorageLoad(world, { destinations: ['hot', 'quiet-1', 'quiet-2', 'quiet-3'], keysPerTenant: 1 })
  await load.progress()
  const original = await world.ownerOf('hot')
  const { values } = load.traffic
  let looks = 0

  const begin = async (): Promise<StorageTransaction> => await beginTransaction(world, values, 'hot')
  /** As `begin`, on one of the two pods: the other one is as likely, and its transaction is ended at once. */
  const beginOn = async (memberId: string): Promise<StorageTransaction> => {
    let found: StorageTransaction | undefined
    await until(async () => {
      world.check()
      const transaction = await begin().catch(error => { if (!(error instanceof NotBegun && error.reply.status === 429)) throw error })
      if (transaction?.memberId === memberId) found = transaction
      else await transaction?.rollBack()
      return found !== undefined
    }, `a transaction has begun on ${memberId}`, 30_000)
    return found as StorageTransaction
  }
  /** It sees what it wrote, and nobody else does: the ledger takes any value that is not committed for a foreign one. */
  const look = async (transaction: StorageTransaction): Promise<void> => {
    for (const [key, value] of transaction.values) {
      const reply = await transaction.get(key)
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      assert.equal((reply.body as { value: string }).value, value)
      assert.equal((await readEverywhere(world, values, 'hot', key)).has(value), false)
      looks++
    }
  }
  const put = async (transaction: StorageTransaction, key: string): Promise<void> => {
    assert.equal((await transaction.put(key)).status, 204)
  }
  const commit = async (transaction: StorageTransaction): Promise<void> => {
    const committed = transaction.values
    const reply = await transaction.commit()
    assert.equal(reply.status, 204, JSON.stringify(reply.body))
    assert.equal(reply.headers['x-storage-pod'], transaction.memberId)
    for (const [key, value] of committed) assert.deepEqual([...await readEverywhere(world, values, 'hot', key)], [value])
    assert.equal((await transaction.send('POST', '/commit')).status, 404)
  }
  const rollBack = async (transaction: StorageTransaction): Promise<void> => {
    const reply = await transaction.rollBack()
    assert.equal(reply.status, 204, JSON.stringify(reply.body))
    for (const key of transaction.values.keys()) await readEverywhere(world, values, 'hot', key)
    assert.equal((await transaction.get('any')).status, 404)
  }

  // Before: on the one pod there is.
  const early = await begin()
  assert.equal(early.memberId, original.name)
  await put(early, 'early-1')
  await look(early)

  const saturation = new Saturation(world, load, 'hot', { holders, lanes: 8 })
  await until(async () => { world.check(); return (await world.ownersOf('hot')).length === 2 }, 'the tenant has a second pod', 30_000)
  const [extra] = (await world.ownersOf('hot')).filter(memberId => memberId !== original.name)
  assert.ok(extra !== undefined)

  // During: one on each, and the early one goes on where it is.
  const [onOriginal, onExtra, doomed] = [await beginOn(original.name), await beginOn(extra), await beginOn(extra)]
  await put(onOriginal, 'original-1')
  await put(onExtra, 'extra-1')
  await put(doomed, 'doomed-1')
  await put(early, 'early-2')
  for (const transaction of [early, onOriginal, onExtra, doomed]) await look(transaction)

  await saturation.stop()
  await until(async () => { world.check(); return (await world.ownersOf('hot')).join() === original.name }, 'the extra pod has removed itself', 30_000)

  // After: the tenant is elsewhere, and the transactions of the pod that left are still there.
  const leftAt = performance.now()
  await until(() => performance.now() - leftAt > cacheTtl + 100, 'no coordinator remembers the extra pod')
  await load.progress()
  assert.equal(load.servedBy('hot'), original.name)
  await put(onExtra, 'extra-2')
  await put(doomed, 'doomed-2')
  await put(early, 'early-3')
  const late = await begin()
  assert.equal(late.memberId, original.name)
  await put(late, 'late-1')
  for (const transaction of [early, onOriginal, onExtra, doomed, late]) await look(transaction)
  for (const transaction of [onExtra, early, onOriginal, late]) await commit(transaction)
  await rollBack(doomed)

  await saturation.readBack()
  await world.finish(load, 'locks across fan-out', { extra: { 'looks at open transactions': looks, 'committed by the load': saturation.commits, 'refused at the cap': saturation.atCap } })

  assert.deepEqual(load.figures.failures, {})
  for (const key of [...doomed.values.keys()]) assert.deepEqual([...await readEverywhere(world, values, 'hot', key)], [null])
  assert.deepEqual(await world.ownersOf('hot'), [original.name])
})
