import assert from 'node:assert/strict'
import test from 'node:test'
import { Member } from '@platformatic/coordinator'
import { until } from '../../test/support/store.ts'
import { atClose } from '../support/closing.ts'
import { Scene } from './support/scene.ts'
import type { RunningPod } from './support/scene.ts'

/** Begins a transaction and returns its lockId. */
async function begin (pod: RunningPod, tenantId = 'bank', body?: unknown): Promise<string> {
  const reply = await pod.send('POST', `/tenants/${tenantId}/transactions`, body)
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.lockId
}

async function startBank (scene: Scene, env: Record<string, number> = {}): Promise<RunningPod> {
  const pod = await scene.startPod('pod-1', env)
  assert.equal((await pod.send('POST', '/tenants/bank')).status, 201)
  return pod
}

const idle = "state LIKE 'idle in transaction%'"
const put = (pod: RunningPod, lockId: string, key: string, value = 'v') => pod.send('PUT', `/transactions/${lockId}/keys/${key}`, { value })

test('a transaction: 201 with its times, a connection of its own, a lock that leads to the pod; all gone after the commit', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { TRANSACTION_IDLE: 7000, TRANSACTION_LIFE: 30_000 })
  const before = Date.now()
  const { status, body } = await pod.send('POST', '/tenants/bank/transactions', { isolationLevel: 'Repeatable Read' })
  assert.deepEqual([status, body.idleTimeout], [201, 7000])
  const expiresIn = Date.parse(body.expiresAt) - before
  assert.ok(expiresIn >= 30_000 && expiresIn < 60_000, String(expiresIn))
  assert.equal((await scene.registry.resolveLock(body.lockId))?.memberId, 'pod-1')
  assert.equal((await put(pod, body.lockId, 'k')).status, 204)
  assert.equal(await scene.countConnections('pod-1', idle), 1)
  assert.equal((await pod.send('POST', `/transactions/${body.lockId}/commit`)).status, 204)
  assert.deepEqual([pod.transactions.count, await scene.countConnections('pod-1', idle)], [0, 0])
  await until(async () => await scene.registry.resolveLock(body.lockId) === null, 'the lock is released')
  assert.equal((await pod.send('GET', '/tenants/bank/keys/k')).body.value, 'v')
})

test('the isolation level is the one that was asked for', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  await pod.send('PUT', '/tenants/bank/keys/k', { value: 'old' })
  for (const [isolationLevel, expected] of [['read committed', 'new'], ['repeatable read', 'old'], ['serializable', 'old']]) {
    await pod.send('PUT', '/tenants/bank/keys/k', { value: 'old' })
    const lockId = await begin(pod, 'bank', { isolationLevel })
    await pod.send('GET', `/transactions/${lockId}/keys/k`)
    await pod.send('PUT', '/tenants/bank/keys/k', { value: 'new' })
    assert.equal((await pod.send('GET', `/transactions/${lockId}/keys/k`)).body.value, expected, isolationLevel)
    await pod.send('POST', `/transactions/${lockId}/rollback`)
  }
  for (const isolationLevel of ['chaos', '', 1, null, 'serializable; DROP TABLE x']) {
    assert.equal((await pod.send('POST', '/tenants/bank/transactions', { isolationLevel })).body.code, 'STORAGE_INVALID_ISOLATION_LEVEL')
  }
})

test('the cap holds for requests that come at once, and is per tenant', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { POOL_MAX: 4, TRANSACTIONS_PER_TENANT: 3 })
  await pod.send('POST', '/tenants/other')
  const replies = await Promise.all(Array.from({ length: 20 }, () => pod.send('POST', '/tenants/bank/transactions')))
  const open = replies.filter(reply => reply.status === 201)
  assert.equal(open.length, 3)
  for (const { status, headers, body } of replies.filter(reply => reply.status !== 201)) {
    assert.deepEqual([status, headers['retry-after'], body.code], [429, '1', 'STORAGE_TOO_MANY_TRANSACTIONS'])
  }
  await begin(pod, 'other')
  assert.equal((await pod.send('PUT', '/tenants/bank/keys/k', { value: 'v' })).status, 204, 'one connection is left for everybody else')
  await pod.send('POST', `/transactions/${open[0]?.body.lockId}/rollback`)
  await begin(pod)
})

test('requests of one transaction run one after another, in the order in which they came', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const lockId = await begin(pod)
  // With a body each, so that none of them overtakes another before it is read.
  const replies = await Promise.all([...Array.from({ length: 30 }, (_, i) => put(pod, lockId, 'k', String(i))), pod.send('POST', `/transactions/${lockId}/commit`, {}), put(pod, lockId, 'k', 'late')])
  assert.deepEqual(replies.map(reply => reply.status), [...Array(31).fill(204), 404])
  assert.equal((await pod.send('GET', '/tenants/bank/keys/k')).body.value, '29')
})

test('one that nobody talks to is rolled back, one that is in use is not, and its longest life ends that one too', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { TRANSACTION_IDLE: 2000, TRANSACTION_LIFE: 6000 })
  const startedAt = performance.now()
  const [forgotten, used] = [await begin(pod), await begin(pod)]
  await put(pod, forgotten, 'forgotten')
  await put(pod, used, 'used')
  let usedFor = 0
  let forgottenFor = 0
  await until(async () => {
    const reply = await put(pod, used, 'used')
    if (forgottenFor === 0 && pod.transactions.count === 1) forgottenFor = performance.now() - startedAt
    usedFor = performance.now() - startedAt
    return reply.status === 404
  }, 'the longest life ends')
  assert.ok(usedFor >= 6000, `used for ${usedFor} ms`)
  assert.ok(forgottenFor >= 2000 && forgottenFor < usedFor, `forgotten for ${forgottenFor} ms`)
  // The first 404 comes while the rollback is under way.
  await until(async () => pod.transactions.count === 0 && await scene.countConnections('pod-1', idle) === 0, 'both connections are back')
  for (const key of ['forgotten', 'used']) assert.equal((await pod.send('GET', `/tenants/bank/keys/${key}`)).status, 404)
  await until(async () => await scene.registry.resolveLock(used) === null, 'the lock is released')
})

test('a conflict is 409, and the transaction is over: its connection is back, its lock is gone', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { POOL_MAX: 3 })
  await pod.send('PUT', '/tenants/bank/keys/k', { value: 'v' })
  const [first, second] = [await begin(pod, 'bank', { isolationLevel: 'repeatable read' }), await begin(pod, 'bank', { isolationLevel: 'repeatable read' })]
  await pod.send('GET', `/transactions/${second}/keys/k`)
  await put(pod, first, 'k', '1')
  await pod.send('POST', `/transactions/${first}/commit`)
  const refused = await put(pod, second, 'k', '2')
  assert.deepEqual([refused.status, refused.body.code], [409, 'STORAGE_TRANSACTION_FAILED'])
  assert.match(refused.body.message, /40001/)
  assert.equal((await pod.send('POST', `/transactions/${second}/commit`)).status, 404)
  assert.deepEqual([pod.transactions.count, await scene.countConnections('pod-1', idle)], [0, 0])
  assert.equal((await pod.send('GET', '/tenants/bank/keys/k')).body.value, '1')
})

test('a deadlock ends one of two transactions with 409, the other commits', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const [first, second] = [await begin(pod), await begin(pod)]
  await put(pod, first, 'a', '1')
  await put(pod, second, 'b', '2')
  const statuses = (await Promise.all([put(pod, first, 'b', '1'), put(pod, second, 'a', '2')])).map(reply => reply.status)
  assert.deepEqual([...statuses].sort(), [204, 409])
  const winner = statuses[0] === 204 ? first : second
  assert.equal((await pod.send('POST', `/transactions/${winner}/commit`)).status, 204)
  const value = statuses[0] === 204 ? '1' : '2'
  for (const key of ['a', 'b']) assert.equal((await pod.send('GET', `/tenants/bank/keys/${key}`)).body.value, value)
})

test('a connection that breaks between two requests: the transaction is over, its place is free', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { POOL_MAX: 2 })
  const lockId = await begin(pod)
  await put(pod, lockId, 'k')
  assert.equal(await scene.breakConnections('pod-1', idle), 1)
  await until(async () => pod.transactions.count === 0, 'the pod notices')
  const replies = [await put(pod, lockId, 'k'), await pod.send('POST', `/transactions/${lockId}/commit`)]
  assert.deepEqual(replies.map(reply => [reply.status, reply.body.code]), Array(2).fill([404, 'STORAGE_TRANSACTION_NOT_FOUND']))
  const next = await begin(pod)
  assert.equal((await put(pod, next, 'k', 'next')).status, 204)
  assert.equal((await pod.send('POST', `/transactions/${next}/commit`)).status, 204)
  assert.equal((await pod.send('GET', '/tenants/bank/keys/k')).body.value, 'next')
})

test('a connection that breaks during a statement: 503, nothing was written, those that waited are 404', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const [blocking, lockId] = [await begin(pod), await begin(pod)]
  await put(pod, blocking, 'k', 'blocking')
  const running = put(pod, lockId, 'k', 'lost')
  const waiting = put(pod, lockId, 'other')
  await until(async () => await scene.breakConnections('pod-1', "state = 'active' AND wait_event_type = 'Lock'") === 1, 'the statement waits for the row')
  const [lost, refused] = [await running, await waiting]
  assert.deepEqual([lost.status, lost.body.code], [503, 'STORAGE_TRANSACTION_LOST'])
  assert.deepEqual([refused.status, refused.body.code], [404, 'STORAGE_TRANSACTION_NOT_FOUND'])
  assert.equal((await pod.send('POST', `/transactions/${blocking}/commit`)).status, 204)
  assert.equal(pod.transactions.count, 0)
})

test('a connection that breaks during the commit: 503 says that the outcome is unknown', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  // Makes the commit take its time.
  const schema = scene.schemaOf('bank')
  await scene.database.query(`CREATE FUNCTION ${schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'`)
  await scene.database.query(`CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON ${schema}.entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${schema}.dawdle()`)
  const lockId = await begin(pod)
  await put(pod, lockId, 'k')
  const commit = pod.send('POST', `/transactions/${lockId}/commit`)
  await until(async () => await scene.breakConnections('pod-1', "query = 'COMMIT' AND state = 'active'") === 1, 'the commit runs')
  const { status, body } = await commit
  assert.deepEqual([status, body.code], [503, 'STORAGE_COMMIT_OUTCOME_UNKNOWN'])
  assert.equal((await pod.send('POST', `/transactions/${lockId}/commit`)).status, 404)
  assert.equal(pod.transactions.count, 0)
})

test('a statement that takes too long ends the transaction', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { STATEMENT_TIMEOUT: 500 })
  const [blocking, lockId] = [await begin(pod), await begin(pod)]
  await put(pod, blocking, 'k')
  const { status, body } = await put(pod, lockId, 'k')
  assert.deepEqual([status, body.code], [409, 'STORAGE_TRANSACTION_FAILED'])
  assert.equal(pod.transactions.count, 1)
})

test('a tenant that does not exist, or does no more, gets no transaction and keeps no place', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene, { TRANSACTIONS_PER_TENANT: 1 })
  for (const tenantId of ['none', 'bank']) {
    if (tenantId === 'bank') {
      await begin(pod) // the pool is open, and its transaction ends with the tenant
      // As another pod does it.
      await scene.database.query(`DROP SCHEMA ${scene.schemaOf('bank')} CASCADE`)
      await scene.database.query(`DELETE FROM ${scene.schemaPrefix}.tenants`)
      await pod.transactions.endAll()
    }
    for (let i = 0; i < 3; i++) {
      const { status, body } = await pod.send('POST', `/tenants/${tenantId}/transactions`)
      assert.deepEqual([status, body.code], [404, 'STORAGE_TENANT_NOT_FOUND'])
    }
  }
  assert.equal(pod.transactions.count, 0)
  assert.equal((await pod.send('POST', '/tenants/bank')).status, 201)
  await begin(pod)
})

test('a pod whose memberId was taken over begins no transaction: 503, and the connection is back', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const successor = new Member({ redis: scene.redisUrl, keyPrefix: scene.keyPrefix, memberIndex: true, memberId: 'pod-1', address: 'http://127.0.0.1:9' })
  atClose(t, () => successor.close())
  await successor.register()
  const { status, headers, body } = await pod.send('POST', '/tenants/bank/transactions')
  assert.deepEqual([status, headers['retry-after'], body.code], [503, '1', 'STORAGE_LOCK_NOT_REGISTERED'])
  assert.deepEqual([pod.transactions.count, await scene.countConnections('pod-1', idle), pod.supersededCount(), pod.membership.isSuperseded], [0, 0, 1, true])
  await successor.deregister()
})

test('draining: no transaction begins, open ones may finish, and the rest is rolled back at the end of the time', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const [quick, slow] = [await begin(pod), await begin(pod)]
  for (const lockId of [quick, slow]) await put(pod, lockId, lockId)
  await pod.membership.drain()
  const refused = await pod.send('POST', '/tenants/bank/transactions')
  assert.deepEqual([refused.status, refused.headers['retry-after'], refused.body.code], [503, '1', 'STORAGE_POD_DRAINING'])
  const startedAt = performance.now()
  const finished = pod.transactions.finish(1000)
  assert.equal((await pod.send('POST', `/transactions/${quick}/commit`)).status, 204)
  await finished
  assert.ok(performance.now() - startedAt >= 999)
  assert.equal((await pod.send('POST', `/transactions/${slow}/commit`)).status, 404)
  assert.deepEqual([pod.transactions.count, await scene.countConnections('pod-1', idle)], [0, 0])
  assert.deepEqual([(await pod.send('GET', `/tenants/bank/keys/${quick}`)).status, (await pod.send('GET', `/tenants/bank/keys/${slow}`)).status], [200, 404])
})

test('draining: the wait ends with the last open transaction', async t => {
  const scene = new Scene(t)
  const pod = await startBank(scene)
  const lockId = await begin(pod)
  await pod.membership.drain()
  const finished = pod.transactions.finish(600_000)
  await pod.send('POST', `/transactions/${lockId}/rollback`)
  await finished
  await pod.transactions.finish(600_000)
})
