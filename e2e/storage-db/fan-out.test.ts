import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createPool } from '../../examples/storage-db/src/database.ts'
import { FanOutRecords } from '../../examples/storage-db/src/fan-out-records.ts'
import { FanOut } from '../../examples/storage-db/src/fan-out.ts'
import { readPodSettings } from '../../examples/storage-db/src/settings.ts'
import { Tenants } from '../../examples/storage-db/src/tenants.ts'
import { until } from '../../test/support/store.ts'
import { atClose } from '../support/closing.ts'
import { Scene } from './support/scene.ts'
import type { RunningPod } from './support/scene.ts'

/** No look by itself within a test: the tests look. */
const quiet = { HEARTBEAT: 20_000, TTL: 60, CACHE_TTL: 0, FAN_IN_CALM: 1 }

interface FanOuts {
  readonly scene: Scene
  readonly pods: RunningPod[]
  /** The part under test, one for each pod. */
  readonly fanOuts: FanOut[]
  /** Others, which remember nothing: one adds a pod to a tenant at most twice a second. */
  readonly makeFanOuts: () => FanOut[]
}

/** Pods, and the fan-out of each by itself, to be called by hand. */
async function startPods (t: TestContext, count: number, env: Record<string, number> = {}): Promise<FanOuts> {
  const scene = new Scene(t)
  const [pods, makers]: [RunningPod[], Array<() => FanOut>] = [[], []]
  for (let i = 1; i <= count; i++) {
    const memberId = `pod-${i}`
    const pod = await scene.startPod(memberId, { ...quiet, ...env })
    const settings = readPodSettings(scene.environment(memberId, { ...quiet, ...env }))
    const catalogue = createPool(settings.database, 2, 10_000, () => {})
    atClose(t, () => catalogue.end())
    const tenants = new Tenants(catalogue, scene.schemaPrefix)
    makers.push(() => new FanOut({ settings, catalogue, records: new FanOutRecords(scene.schemaPrefix), tenants, pools: pod.pools, membership: pod.membership, log: pod.app.log }))
    pods.push(pod)
  }
  assert.equal((await pods[0]?.send('POST', '/tenants/hot'))?.status, 201)
  const makeFanOuts = (): FanOut[] => makers.map(make => make())
  return { scene, pods, fanOuts: makeFanOuts(), makeFanOuts }
}

async function readRecord (scene: Scene): Promise<{ keeper: string } | undefined> {
  const { rows } = await scene.database.query(`SELECT keeper FROM ${scene.schemaPrefix}.fan_outs WHERE tenant_id = 'hot'`)
  return rows[0]
}

/** Makes what is recorded look old, so that no test has to wait. */
async function age (scene: Scene): Promise<void> {
  await scene.database.query(`UPDATE ${scene.schemaPrefix}.fan_outs SET changed_at = now() - interval '1 hour', saturated_at = now() - interval '1 hour'`)
}

test('a saturated tenant gets the idlest pod, and its own pod is recorded as the keeper', async t => {
  const { scene, pods: [, , third], fanOuts: [first] } = await startPods(t, 3)
  await third?.send('POST', '/tenants/other')
  await third?.send('PUT', '/tenants/other/keys/k', { value: 'v' })
  await third?.membership.member.heartbeat()
  await first?.onSaturated('hot')
  assert.deepEqual(await scene.boundTo('hot'), ['pod-1', 'pod-2'])
  assert.deepEqual(await readRecord(scene), { keeper: 'pod-1' })
})

test('pods that are saturated at once add one, not one each, and never more than the limit', async t => {
  const { scene, makeFanOuts } = await startPods(t, 5, { MAX_PODS_PER_TENANT: 3 })
  await scene.registry.addPodToDestination('hot', 'pod-2')
  await scene.database.query(`INSERT INTO ${scene.schemaPrefix}.fan_outs (tenant_id, keeper) VALUES ('hot', 'pod-1')`)
  for (let round = 0; round < 3; round++) {
    await age(scene)
    await Promise.all(makeFanOuts().map(fanOut => fanOut.onSaturated('hot')))
  }
  assert.equal((await scene.boundTo('hot')).length, 3)
  assert.deepEqual(await readRecord(scene), { keeper: 'pod-1' })
})

test('when all is calm the extra pods leave one after another, whoever looks at once, and the keeper stays', async t => {
  const { scene, fanOuts } = await startPods(t, 4, { FAN_IN_CALM: 300 })
  for (const memberId of ['pod-2', 'pod-3', 'pod-4']) await scene.registry.addPodToDestination('hot', memberId)
  await scene.database.query(`INSERT INTO ${scene.schemaPrefix}.fan_outs (tenant_id, keeper) VALUES ('hot', 'pod-3')`)
  const counts: number[] = []
  await until(async () => {
    await age(scene)
    await Promise.all(fanOuts.map(fanOut => fanOut.lookAtAll()))
    const bound = await scene.boundTo('hot')
    assert.ok(bound.includes('pod-3'), `pod-3 stays among ${bound.join(', ')}`)
    if (bound.length !== counts.at(-1)) counts.push(bound.length)
    return bound.length === 1 && await readRecord(scene) === undefined
  }, 'one pod is left, and nothing is recorded')
  assert.deepEqual(counts.filter((count, i) => i > 0 && count !== (counts[i - 1] ?? 0) - 1), [], `one at a time: ${counts.join(', ')}`)
})

test('an extra pod stays as long as a pod came or was saturated lately, or its own connections are in use', async t => {
  const { scene, pods: [, second], fanOuts: [, extra] } = await startPods(t, 2, { POOL_MAX: 1, TRANSACTION_IDLE: 60_000 })
  await scene.registry.addPodToDestination('hot', 'pod-2')
  await scene.database.query(`INSERT INTO ${scene.schemaPrefix}.fan_outs (tenant_id, keeper) VALUES ('hot', 'pod-1')`)
  const set = async (column: string): Promise<void> => {
    await age(scene)
    await scene.database.query(`UPDATE ${scene.schemaPrefix}.fan_outs SET ${column} = now() + interval '1 hour'`)
  }
  const look = async (): Promise<void> => { for (let i = 0; i < 5; i++) await extra?.lookAtAll() }
  for (const column of ['changed_at', 'saturated_at']) {
    await set(column)
    await look()
    assert.deepEqual([column, await scene.boundTo('hot')], [column, ['pod-1', 'pod-2']])
  }
  const { body: { lockId } } = await second?.send('POST', '/tenants/hot/transactions') ?? assert.fail()
  second?.pools.look('hot') // what counts is from here on
  await age(scene)
  await look()
  assert.deepEqual(await scene.boundTo('hot'), ['pod-1', 'pod-2'])
  await second?.send('POST', `/transactions/${lockId}/rollback`)
  await until(async () => {
    await age(scene)
    await look()
    return (await scene.boundTo('hot')).length === 1
  }, 'it leaves')
})

test('the keeper dies or drains: another stays in its place, and the record goes when one is left', async t => {
  const { scene, pods, fanOuts } = await startPods(t, 3)
  for (const memberId of ['pod-2', 'pod-3']) await scene.registry.addPodToDestination('hot', memberId)
  await scene.database.query(`INSERT INTO ${scene.schemaPrefix}.fan_outs (tenant_id, keeper) VALUES ('hot', 'pod-1')`)
  await pods[0]?.membership.drain()
  await until(async () => {
    await age(scene)
    await Promise.all(fanOuts.map(fanOut => fanOut.lookAtAll()))
    return (await scene.boundTo('hot')).length === 2
  }, 'the third leaves')
  assert.deepEqual(await scene.boundTo('hot'), ['pod-1', 'pod-2'])
  await pods[0]?.membership.leave()
  await until(async () => {
    await Promise.all(fanOuts.map(fanOut => fanOut.lookAtAll()))
    return await readRecord(scene) === undefined
  }, 'nothing is recorded any more')
  assert.deepEqual(await scene.boundTo('hot'), ['pod-2'])
})

test('a pod that was added by hand is nobody\'s extra one', async t => {
  const { scene, fanOuts } = await startPods(t, 2)
  await scene.registry.addPodToDestination('hot', 'pod-2')
  for (let i = 0; i < 3; i++) await Promise.all(fanOuts.map(fanOut => fanOut.lookAtAll()))
  assert.deepEqual(await scene.boundTo('hot'), ['pod-1', 'pod-2'])
})

test('a tenant that is deleted meanwhile gets no pod, and no record', async t => {
  const { scene, pods: [first], fanOuts: [fanOut] } = await startPods(t, 2)
  // Its schema goes, the binding is still there: as it is between the two steps of a delete.
  await scene.database.query(`DELETE FROM ${scene.schemaPrefix}.tenants`)
  await fanOut?.onSaturated('hot')
  assert.deepEqual([await scene.boundTo('hot'), await readRecord(scene)], [['pod-1'], undefined])
  assert.equal((await first?.send('GET', '/tenants/hot/keys'))?.status, 404)
})

test('from the waiting request to the second pod and back, with the pool of the pod itself', async t => {
  const scene = new Scene(t)
  const env = { POOL_MAX: 2, TRANSACTIONS_PER_TENANT: 2, FAN_OUT_WAIT: 50, FAN_IN_CALM: 500, HEARTBEAT: 200, CONNECT_TIMEOUT: 30_000, TRANSACTION_IDLE: 60_000 }
  const [first] = [await scene.startPod('pod-1', env), await scene.startPod('pod-2', env)]
  await first?.send('POST', '/tenants/hot')
  const lockIds: string[] = []
  for (let i = 0; i < 2; i++) lockIds.push((await first?.send('POST', '/tenants/hot/transactions'))?.body.lockId)
  const waiting = first?.send('PUT', '/tenants/hot/keys/k', { value: 'v' })
  await until(async () => (await scene.boundTo('hot')).length === 2, 'the second pod is bound')
  for (const lockId of lockIds) await first?.send('POST', `/transactions/${lockId}/rollback`)
  assert.equal((await waiting)?.status, 204)
  await until(async () => (await scene.boundTo('hot')).length === 1, 'the second pod leaves', 60_000)
  assert.deepEqual(await scene.boundTo('hot'), ['pod-1'])
})
