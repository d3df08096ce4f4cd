// The stateful pod has no part here: it has no transactions, and what becomes of its single writes failover, drain and paused pod show.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/store.ts'
import type { Reply } from '../support/client.ts'
import type { Load } from '../support/load.ts'
import type { TestProcess } from '../support/processes.ts'
import { settleOthers } from '../support/settle-others.ts'
import { startStorageLoad } from '../support/start-load.ts'
import type { StorageTraffic } from '../support/storage-traffic.ts'
import { beginTransaction, NotBegun, readEverywhere } from '../support/storage-transaction.ts'
import type { StorageTransaction } from '../support/storage-transaction.ts'
import { codeOf, isUncertain } from '../support/traffic.ts'
import { setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const tenants = 2
const keysPerTransaction = 4
/** Milliseconds a lane of the load rests. */
const pace = 80
const patience = { requestTimeout: 10_000, podEnv: { CONNECT_TIMEOUT: '8000', STATEMENT_TIMEOUT: '8000', TRANSACTION_IDLE: '60000', POOL_MAX: '8' } }

const returns = {
  'and its record expires': {
    ttl: 2,
    happens: async (world: World, victim: TestProcess) => {
      await until(async () => { world.check(); return !(await world.registry.listLiveMembers()).some(({ memberId }) => memberId === victim.name) }, `the record of ${victim.name} has ended`)
    }
  },
  // So long that the record never ends: what tells the two apart is the incarnation alone.
  'and a new process takes its id at once': {
    ttl: 60,
    happens: async (world: World, victim: TestProcess) => { await world.addPod(victim.name) }
  }
}

for (const [what, how] of Object.entries(returns)) {
  test(`transaction lost, storage-db: a pod is killed with open transactions ${what}; each is there wholly or not at all, and is never found again`, async t => await killed(t, what, how))
}

async function killed (t: TestContext, what: string, { ttl, happens }: { ttl: number, happens: (world: World, victim: TestProcess) => Promise<void> }): Promise<void> {
  const world = await setWorld(t, { kind: 'storage-db', ttl, heartbeat: 400, ...patience })
  const load = await startStorageLoad(world, { pace })
  await load.progress()
  const victim = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(victim.name)

  // Some are only open; some are about to be committed when the pod dies; the answers of the last can never come.
  const tenantIds = affected.slice(0, tenants)
  const [open, racing, late] = [await openMany(world, load, tenantIds, 'open', 2), await openMany(world, load, tenantIds, 'racing', 4), await openMany(world, load, tenantIds, 'late', 1)]
  for (const { memberId } of [...open, ...racing, ...late]) assert.equal(memberId, victim.name)
  const { answers, isAnswered } = commitAll(racing)
  await isAnswered
  const isGone = world.landing.hold()
  await victim.pause()
  const { answers: lateAnswers } = commitAll(late)
  await victim.kill()
  isGone()
  for (const transaction of open) transaction.giveUp()

  // Nobody knows a transaction any more: 502 or 503 for as long as the pod counts as there, and then 404 for ever.
  const histories = new Map([...open, ...racing, ...late].map(transaction => [transaction, [] as number[]]))
  await Promise.all([happens(world, victim), until(async () => {
    world.check()
    await askAll(histories)
    return [...histories.values()].every(statuses => statuses.at(-1) === 404)
  }, 'every transaction is unknown')])
  await load.progress()
  if (!world.livePods.some(({ name }) => name === victim.name)) await world.addPod(victim.name)
  assert.notEqual(world.pod(victim.name).pid, victim.pid)
  for (let round = 0; round < 5; round++) await askAll(histories)
  for (const [{ lockId }, statuses] of histories) assert.match(statuses.join(' '), /^(50[23] )*404( 404)*$/, `${lockId}: ${statuses.join(' ')}`)

  const lost = await judge(world, load, [...racing, ...late], await Promise.all([...answers, ...lateAnswers]))
  // What a pod that stood still until its death was asked to commit cannot be there, nor what nobody asked to commit.
  for (const { tenantId, values } of [...open, ...late]) {
    for (const key of values.keys()) assert.deepEqual([...await readEverywhere(world, load.traffic.values, tenantId, key)], [null])
  }
  await settleOthers(world, load)
  for (const { tenantId, values } of [...racing, ...late]) {
    for (const key of values.keys()) await readEverywhere(world, load.traffic.values, tenantId, key)
  }
  const locks = [...histories.values()]
  await world.finish(load, `transactions of a killed pod ${what}`, {
    affected,
    extra: { 'left open': open.length, commits: racing.length + late.length, 'without an answer': lost.unanswered, 'of these there': lost.there, '502 or 503 before 404': locks.flat().filter(status => status !== 404).length }
  })

  assert.ok(lost.unanswered >= late.length)
}

test('transaction lost, storage-db: a pod that is asked to leave lets open transactions end within DRAIN_TIMEOUT, rolls back the others, and begins none', async t => {
  const drainTimeout = 2500
  // Nothing here is to come from a record that expired.
  const world = await setWorld(t, { kind: 'storage-db', ttl: 60, heartbeat: 500, ...patience, podEnv: { ...patience.podEnv, DRAIN_TIMEOUT: String(drainTimeout) } })
  const load = await startStorageLoad(world, { pace })
  await load.progress()
  const leaver = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(leaver.name)
  const tenantIds = affected.slice(0, tenants)
  const [finished, abandoned] = [await openMany(world, load, tenantIds, 'finished', 2), await openMany(world, load, tenantIds, 'abandoned', 2)]

  const ending = leaver.terminate()
  await until(async () => (await world.registry.listLiveMembers()).some(({ memberId, draining }) => memberId === leaver.name && draining), `${leaver.name} drains`)
  // Refused, or begun elsewhere if the tenant has moved meanwhile; never on the pod that leaves.
  let refusedBegins = 0
  for (const tenantId of tenantIds) {
    try {
      const transaction = await beginTransaction(world, load.traffic.values, tenantId)
      assert.notEqual(transaction.memberId, leaver.name)
      assert.equal((await transaction.rollBack()).status, 204)
    } catch (error) {
      if (!(error instanceof NotBegun)) throw error
      assert.equal(error.reply.status, 503, String(error))
      refusedBegins++
    }
  }
  // One request after another, as a client would that knows nothing of all this.
  for (const transaction of finished) {
    assert.equal((await transaction.put('in-the-drain')).status, 204)
    const [[key, value] = ['', '']] = transaction.values
    assert.deepEqual((await transaction.get(key)).body, { value, encoding: 'text' })
    const reply = await transaction.commit()
    assert.equal(reply.status, 204, JSON.stringify(reply.body))
    assert.equal(reply.headers['x-storage-pod'], leaver.name)
  }
  for (const transaction of abandoned) transaction.giveUp()
  const exit = await ending
  await load.progress()

  assert.ok(exit.tookMs >= drainTimeout, `it left after ${exit.tookMs} ms, with transactions open`)
  const histories = new Map([...finished, ...abandoned].map(transaction => [transaction, [] as number[]]))
  await askAll(histories)
  await world.addPod(leaver.name)
  for (let round = 0; round < 3; round++) await askAll(histories)
  for (const statuses of histories.values()) assert.deepEqual(new Set(statuses), new Set([404]))
  for (const { tenantId, values } of abandoned) {
    for (const key of values.keys()) assert.deepEqual([...await readEverywhere(world, load.traffic.values, tenantId, key)], [null])
  }
  for (const { tenantId, values } of finished) {
    for (const [key, value] of values) if (key !== 'in-the-drain') assert.deepEqual([...await readEverywhere(world, load.traffic.values, tenantId, key)], [value])
  }
  for (const tenantId of tenantIds) await readEverywhere(world, load.traffic.values, tenantId, 'in-the-drain')
  await world.finish(load, 'transactions of a pod that leaves', { affected, extra: { 'committed in the drain': finished.length, 'rolled back': abandoned.length, 'begins refused': refusedBegins, 'exit ms': exit.tookMs } })
  assert.deepEqual(load.figures.failures, {})
})

test('transaction lost, storage-db: a pod that is asked to leave does not wait for DRAIN_TIMEOUT once its transactions have ended', async t => {
  const drainTimeout = 25_000
  const world = await setWorld(t, { kind: 'storage-db', ttl: 60, heartbeat: 500, ...patience, podEnv: { ...patience.podEnv, DRAIN_TIMEOUT: String(drainTimeout) } })
  const load = await startStorageLoad(world, { pace })
  await load.progress()
  const leaver = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(leaver.name)
  const transactions = await openMany(world, load, affected.slice(0, tenants), 'finished', 2)

  const ending = leaver.terminate()
  await until(async () => (await world.registry.listLiveMembers()).some(({ memberId, draining }) => memberId === leaver.name && draining), `${leaver.name} drains`)
  for (const [i, transaction] of transactions.entries()) {
    const reply = await (i % 2 === 0 ? transaction.commit() : transaction.rollBack())
    assert.equal(reply.status, 204, JSON.stringify(reply.body))
  }
  const exit = await ending
  await load.progress()
  for (const [i, { tenantId, values }] of transactions.entries()) {
    for (const [key, value] of values) assert.deepEqual([...await readEverywhere(world, load.traffic.values, tenantId, key)], [i % 2 === 0 ? value : null])
  }
  await world.finish(load, 'transactions end, then the pod', { affected, extra: { 'exit ms': exit.tookMs } })
  assert.ok(exit.tookMs < drainTimeout)
  assert.deepEqual(load.figures.failures, {})
})

/** Opens so many transactions for each tenant, with keys of their own. */
async function openMany (world: World, load: Load<StorageTraffic>, tenantIds: readonly string[], name: string, count: number): Promise<StorageTransaction[]> {
  assert.ok(tenantIds.length > 0)
  return (await Promise.all(tenantIds.map(async tenantId => await Promise.all(Array.from({ length: count }, async (_, i) => {
    const transaction = await beginTransaction(world, load.traffic.values, tenantId)
    for (let j = 0; j < keysPerTransaction; j++) assert.equal((await transaction.put(`${name}-${i + 1}-${j + 1}`)).status, 204)
    return transaction
  }))))).flat()
}

/** Sends all commits at once. */
function commitAll (transactions: readonly StorageTransaction[]): { answers: Promise<Reply>[], isAnswered: Promise<Reply> } {
  const answers = transactions.map(transaction => transaction.commit())
  return { answers, isAnswered: Promise.race(answers) }
}

/** Asks for each transaction once, by a commit: one that was carried out now would be a commit that nobody could know of. */
async function askAll (histories: ReadonlyMap<StorageTransaction, number[]>): Promise<void> {
  await Promise.all([...histories].map(async ([transaction, statuses]) => {
    const { status } = await transaction.send('POST', '/commit')
    assert.equal(typeof status, 'number', `a coordinator gave no answer: ${status}`)
    statuses.push(Number(status))
  }))
  await sleep(100)
}

/** Holds the keys of each transaction against the answer of its commit: all of them are there, or none. */
async function judge (world: World, load: Load<StorageTraffic>, transactions: readonly StorageTransaction[], replies: readonly Reply[]): Promise<{ unanswered: number, there: number }> {
  let [unanswered, there] = [0, 0]
  for (const [i, { tenantId, values }] of transactions.entries()) {
    const reply = replies[i] as Reply
    let found = 0
    for (const [key, value] of values) {
      const seen = await readEverywhere(world, load.traffic.values, tenantId, key)
      assert.equal(seen.size, 1, `${tenantId}/${key} is read differently`)
      if (seen.has(value)) found++
    }
    assert.ok(found === 0 || found === values.size, `${found} of ${values.size} keys of a transaction of ${tenantId} are there, its commit got ${reply.status}`)
    if (reply.status === 204) assert.equal(found, values.size)
    else if (isUncertain(reply)) [unanswered, there] = [unanswered + 1, there + (found > 0 ? 1 : 0)]
    else assert.fail(`a commit got ${reply.status} ${codeOf(reply.body)}`)
  }
  return { unanswered, there }
}
