// Fan-out is for pods whose state is outside of them. The stateful pod has no part here: a number that is kept in one memory cannot be
// counted by two pods, and nothing there asks for a second one.

import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { BindingWatch } from '../support/binding-watch.ts'
import { Saturation } from '../support/saturation.ts'
import { settleOthers } from '../support/settle-others.ts'
import { startStorageLoad } from '../support/start-load.ts'
import { setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const poolMax = 3
const others = ['quiet-1', 'quiet-2', 'quiet-3', 'quiet-4', 'quiet-5']
/** Milliseconds coordinators may go by a binding that they have read: so long they may send to a pod that has left. */
const cacheTtl = 500
const saturating = { holders: poolMax, lanes: 6 }
// Waits are long on purpose: nothing is to fail because a connection was waited for, on however busy a machine.
const patience = { requestTimeout: 15_000, podEnv: { CONNECT_TIMEOUT: '10000', STATEMENT_TIMEOUT: '10000' } }

test('fan-out, storage-db: a tenant that saturates its pod gets a second one under load, and is back on its first when it has been calm', async t => {
  const fanInCalm = 1500
  // A ttl so long that no binding changes for another reason.
  const world = await setWorld(t, {
    kind: 'storage-db',
    ttl: 30,
    heartbeat: 200,
    cacheTtl,
    ...patience,
    podEnv: { ...patience.podEnv, POOL_MAX: String(poolMax), TRANSACTIONS_PER_TENANT: String(poolMax), FAN_OUT_WAIT: '20', FAN_IN_CALM: String(fanInCalm), MAX_PODS_PER_TENANT: '2' }
  })
  const load = await startStorageLoad(world, { destinations: ['hot', ...others], keysPerTenant: 1 })
  await load.progress()
  const original = await world.ownerOf('hot')
  const owners = new Map(await Promise.all(others.map(async id => [id, (await world.ownerOf(id)).name] as const)))
  const watch = new BindingWatch(world, ['hot', ...others])

  const startedAt = performance.now()
  const saturation = new Saturation(world, load, 'hot', saturating)
  await until(async () => (await listedPods(world, 'hot')).length === 2, 'GET /pods shows the tenant on a second pod', 30_000)
  const fannedOutMs = performance.now() - startedAt
  const before = new Map(saturation.servedBy)
  await until(() => {
    world.check()
    return [...saturation.servedBy].filter(([memberId, count]) => count > (before.get(memberId) ?? 0)).length === 2
  }, 'both pods serve the tenant', 30_000)
  await load.progress()

  await saturation.stop()
  const calmedAt = performance.now()
  await until(async () => {
    world.check()
    return (await listedPods(world, 'hot')).join() === original.name
  }, 'the extra pod has removed itself', 30_000)
  const leftAt = performance.now()
  const fannedInMs = leftAt - calmedAt
  await until(() => performance.now() - leftAt > cacheTtl + 100, 'no coordinator remembers the extra pod')
  await load.progress()
  await load.requests(100)
  await watch.stop()
  await saturation.readBack()
  const served = [...saturation.servedBy].sort().map(([memberId, count]) => `${memberId}: ${count}`).join(', ')
  await world.finish(load, 'fan-out and fan-in', { extra: { 'fanned out after ms': fannedOutMs, 'fanned in after ms': fannedInMs, served, 'committed transactions': saturation.commits, 'looks at the bindings': watch.rounds } })

  assert.deepEqual(load.figures.failures, {})
  assert.deepEqual(await world.ownersOf('hot'), [original.name])
  assert.equal(load.servedBy('hot'), original.name)
  // The original is there all the time, and so nobody ever finds the tenant without a pod.
  const states = watch.history('hot')
  for (const { live, dead } of states) {
    assert.ok(live.includes(original.name) && live.length <= 2, watch.succession('hot').join(' > '))
    assert.deepEqual(dead, [])
  }
  // Calm counts from the last change, when coordinators may have heard of it: each extra pod stays for that long at least.
  for (const [i, { live, seenAt }] of states.entries()) {
    if (live.length === 2) assert.ok((states[i + 1]?.seenAt ?? 0) - seenAt >= fanInCalm, `the extra pod left after ${(states[i + 1]?.seenAt ?? 0) - seenAt} ms`)
  }
  for (const [tenantId, owner] of owners) {
    assert.deepEqual(watch.succession(tenantId), [owner])
    assert.equal(load.servedBy(tenantId), owner)
  }
})

test('fan-out, storage-db: the original pod of a tenant is killed while it is fanned out, the extra one serves on, and stays', async t => {
  // Longer than the ttl: as long as the record of the killed pod lasts, the extra one takes it for the one that stays. Were it calm for
  // FAN_IN_CALM by then it would go, and the next request give the tenant to some pod, as after any failover.
  const [ttl, fanInCalm] = [6, 9000]
  const world = await setWorld(t, {
    kind: 'storage-db',
    ttl,
    heartbeat: 200,
    cacheTtl,
    ...patience,
    podEnv: { ...patience.podEnv, POOL_MAX: String(poolMax), TRANSACTIONS_PER_TENANT: String(poolMax), FAN_OUT_WAIT: '20', FAN_IN_CALM: String(fanInCalm), MAX_PODS_PER_TENANT: '2' }
  })
  const load = await startStorageLoad(world, { destinations: ['hot', ...others], keysPerTenant: 1 })
  await load.progress()
  const original = await world.ownerOf('hot')
  const saturation = new Saturation(world, load, 'hot', saturating)
  await until(() => { world.check(); return saturation.servedBy.size === 2 }, 'both pods serve the tenant', 30_000)
  const [extra] = (await world.ownersOf('hot')).filter(memberId => memberId !== original.name)
  assert.ok(extra !== undefined)
  const affected = (await world.registry.listOwned(original.name)).filter(tenantId => tenantId !== 'hot')
  const watch = new BindingWatch(world, ['hot'])

  await original.kill()
  const killedAt = performance.now()
  // Before its record ends, so by nothing but the extra pod: nobody waits for the ttl here, as the other tenants of the killed pod do. What
  // saturates the extra pod as well ends, or requests would wait for connections instead.
  await Promise.all([saturation.stop(), load.progress(['hot'])])
  const servedOnMs = performance.now() - killedAt
  assert.ok((await world.binding('hot')).some(({ memberId, isLive }) => memberId === original.name && isLive), `the record of ${original.name} had ended by then`)
  assert.equal(load.servedBy('hot'), extra)
  const calmedAt = performance.now()
  await load.progress()
  // It has had the time to leave, were it not for being the only one.
  await until(() => { world.check(); return performance.now() - calmedAt > fanInCalm + 1500 }, 'FAN_IN_CALM is over', 30_000)
  await load.progress()
  await watch.stop()
  await settleOthers(world, load)
  await saturation.readBack()
  await world.finish(load, 'fanned out, original killed', { affected, extra: { 'served on after ms': servedOnMs, 'gap of the tenant ms': load.figures.longestGap(['hot']) } })

  assert.deepEqual(await world.ownersOf('hot'), [extra])
  assert.ok(load.figures.longestGap(['hot']) < ttl * 1000, `the tenant was served by nobody for ${load.figures.longestGap(['hot'])} ms`)
  for (const { live } of watch.history('hot')) assert.ok(live.includes(extra), watch.succession('hot').join(' > '))
  // Requests that were under way, and those that were refused and had no second chance; those of transactions that ended with their pod.
  const { failures } = load.figures
  assert.deepEqual(Object.keys(failures).filter(label => !/^(502|503 |404 STORAGE_TRANSACTION_NOT_FOUND|404 PLT)/.test(label)), [], JSON.stringify(failures))
})

/** The pods that GET /pods shows for a tenant. */
async function listedPods (world: World, tenantId: string): Promise<string[]> {
  const { body } = await world.send('GET', '/pods')
  return (body as { pods: { memberId: string, tenants: string[] }[] }).pods.filter(({ tenants }) => tenants.includes(tenantId)).map(({ memberId }) => memberId)
}
