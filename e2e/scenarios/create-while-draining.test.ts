import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/store.ts'
import type { Reply } from '../support/client.ts'
import type { Load } from '../support/load.ts'
import type { TestProcess } from '../support/processes.ts'
import { podOf, Replacement } from '../support/replacement.ts'
import { settleOthers } from '../support/settle-others.ts'
import { startStatefulLoad, startStorageLoad } from '../support/start-load.ts'
import { beginTransaction } from '../support/storage-transaction.ts'
import { codeOf } from '../support/traffic.ts'
import type { Outcome } from '../support/traffic.ts'
import type { ValueLedger } from '../support/value-ledger.ts'
import { setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const callers = 50
/** Callers that ask for one new id at the same moment. */
const racers = 5
/** Milliseconds a group of callers rests: each of its turns is a schema more. */
const pace = 300
// So long that no pod loses its record, however busy the machine is: what moves, moves by the drains.
const ttl = 60
let heldCount = 1

test('create while draining, storage-db: 50 callers create tenants while each pod is replaced, each is created once, and none by a pod that drains', async t => {
  const world = await setWorld(t, { kind: 'storage-db', ttl, heartbeat: 500, cacheTtl: 300, requestTimeout: 15_000, podEnv: { CONNECT_TIMEOUT: '10000', STATEMENT_TIMEOUT: '10000', TRANSACTION_IDLE: '120000', TRANSACTION_LIFE: '120000', DRAIN_TIMEOUT: '60000', POOL_IDLE: '500' } })
  const load = await startStorageLoad(world, { destinations: 6 })
  await load.progress()
  const replacement = new Replacement(world, leaver => holdTransaction(world, load.traffic.values, leaver))
  const creates = new Map<string, Reply[]>()
  let repeats = 0

  const create = async (tenantId: string, i: number): Promise<Reply> => {
    const reply = await world.send('POST', `/tenants/${tenantId}`, undefined, world.urls[i % 2])
    load.figures.record(toOutcome(tenantId, reply, reply.status === 201 || reply.status === 200))
    creates.set(tenantId, [...creates.get(tenantId) ?? [], reply])
    return reply
  }
  const groups = Array.from({ length: callers / racers }, async (_, group) => {
    for (let turn = 1; !replacement.isOver; turn++) {
      const tenantId = `new-${group}-${turn}`
      const replies = await Promise.all(Array.from({ length: racers }, (_, i) => create(tenantId, i)))
      await replacement.check(tenantId, replies)
      // What was acknowledged takes writes at once, and is found by those who create it again.
      await load.traffic.write(world.urls[turn % 2] ?? '', { destinationId: tenantId, key: 'first' }).then(outcome => load.figures.record(outcome))
      const known = [...creates.keys()]
      await create(known[Math.floor(Math.random() * known.length)] as string, turn)
      repeats++
      await sleep(pace)
    }
  })
  await Promise.all([replacement.run(), ...groups])
  await load.progress()

  await Promise.all([...creates].map(async ([tenantId, replies]) => {
    const statuses = replies.map(({ status }) => status)
    assert.deepEqual([statuses.filter(status => status === 201).length, statuses.filter(status => status !== 200).length], [1, 1], `${tenantId}: ${statuses.join(' ')}`)
    const outcome = await load.traffic.read(world.urls[0] ?? '', { destinationId: tenantId, key: 'first' })
    assert.equal(outcome.result, 'ok', `${tenantId}: ${outcome.status} ${outcome.code}`)
    assert.deepEqual(await world.ownersOf(tenantId), [outcome.memberId])
  }))
  const { rows } = await world.parts.database.query(`SELECT id FROM ${world.parts.name}.tenants`)
  assert.deepEqual(rows.map(({ id }) => id).sort(), [...creates.keys(), ...load.destinationIds].sort())
  await world.finish(load, 'create while draining', { extra: { created: creates.size, 'again later': repeats, ...replacement.figures } })
  replacement.judge()
  assert.deepEqual(load.figures.failures, {})
})

test('create while draining, stateful: destinations that begin while each pod is replaced have one owner each, and none that drains', async t => {
  const world = await setWorld(t, { kind: 'stateful', ttl, heartbeat: 500, cacheTtl: 60_000, requestTimeout: 15_000 })
  const load = await startStatefulLoad(world, { destinations: 6 })
  await load.progress()
  const replacement = new Replacement(world, leaver => holdWrite(world, load, leaver))
  const begun: string[] = []

  const groups = Array.from({ length: callers / racers }, async (_, group) => {
    for (let turn = 1; !replacement.isOver; turn++) {
      const destinationId = `new-${group}-${turn}`
      begun.push(destinationId)
      // One counts, the others look: all of them are the first.
      const [, ...replies] = await Promise.all([
        writeUntilDone(load, world, destinationId, turn),
        ...Array.from({ length: racers - 1 }, (_, i) => world.send('GET', `/${destinationId}`, undefined, world.urls[i % 2]))
      ])
      await replacement.check(destinationId, replies)
      for (let i = 0; i < 3; i++) await writeUntilDone(load, world, destinationId, turn + i)
      await sleep(pace)
    }
  })
  await Promise.all([replacement.run(), ...groups])
  await load.progress()
  // A write without an answer, cut off when its pod closed.
  await settleOthers(world, load)
  await Promise.all(begun.map(async destinationId => {
    const outcome = await readUntilDone(load, world, destinationId)
    assert.deepEqual(await world.ownersOf(destinationId), [outcome.memberId])
  }))
  await world.finish(load, 'begin while draining', { extra: { begun: begun.length, ...replacement.figures } })
  replacement.judge()
  // A pod with memory is done with a destination before another one may have it, and says so meanwhile.
  assert.equal(load.figures.failed(''), load.figures.failed('503 CLOSED') + load.figures.failed('503 DRAINING') + load.figures.failed('502'), JSON.stringify(load.figures.failures))
})

/** Has a pod wait for the end of a transaction. */
async function holdTransaction (world: World, values: ValueLedger, leaver: TestProcess): Promise<() => Promise<void>> {
  const [tenantId] = await world.registry.listOwned(leaver.name)
  assert.ok(tenantId !== undefined, `${leaver.name} has no tenant`)
  const transaction = await beginTransaction(world, values, tenantId)
  assert.equal(transaction.memberId, leaver.name)
  return async () => { assert.equal((await transaction.rollBack()).status, 204) }
}

/** Has a pod wait for a write that PostgreSQL does not finish. */
async function holdWrite (world: World, load: Load, leaver: TestProcess): Promise<() => Promise<void>> {
  const { database, name } = world.parts
  let destinationId = ''
  await until(async () => {
    destinationId = `held-${heldCount++}`
    return (await writeUntilDone(load, world, destinationId, 0)).memberId === leaver.name
  }, `${leaver.name} has a destination`)
  const client = await database.connect()
  await client.query('BEGIN')
  await client.query(`SELECT 1 FROM ${name}.numbers WHERE destination = $1 FOR UPDATE`, [destinationId])
  const written = load.traffic.write(world.urls[0] ?? '', { destinationId, key: '' })
  await until(async () => {
    const { rows } = await database.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0", [`INSERT INTO ${name}.numbers`])
    return rows.length > 0
  }, 'a write waits')
  return async () => {
    await client.query('ROLLBACK')
    client.release()
    const outcome = await written
    assert.deepEqual([outcome.result, outcome.memberId], ['ok', leaver.name], `${outcome.status} ${outcome.code}`)
  }
}

async function writeUntilDone (load: Load, world: World, destinationId: string, turn: number): Promise<Outcome> {
  return await untilDone(load, world, coordinator => load.traffic.write(coordinator, { destinationId, key: '' }), turn)
}

async function readUntilDone (load: Load, world: World, destinationId: string): Promise<Outcome> {
  return await untilDone(load, world, coordinator => load.traffic.read(coordinator, { destinationId, key: '' }), 0)
}

/** Asks again, each time the other coordinator, for as long as it is refused. */
async function untilDone (load: Load, world: World, ask: (coordinator: string) => Promise<Outcome>, turn: number): Promise<Outcome> {
  let outcome: Outcome | undefined
  await until(async () => {
    world.check()
    outcome = await ask(world.urls[turn++ % world.urls.length] ?? '')
    load.figures.record(outcome)
    return outcome.result === 'ok'
  }, 'a request is answered')
  return outcome as Outcome
}

function toOutcome (destinationId: string, reply: Reply, isOk: boolean): Outcome {
  const { status, body, sentAt, endedAt } = reply
  return { destinationId, isWrite: true, result: isOk ? 'ok' : 'failed', status, code: codeOf(body), memberId: podOf(reply), sentAt, endedAt }
}
