import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { startLoad, startStorageLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const ttl = 2
const cacheTtl = 1000
const pods = ['pod-1', 'pod-2', 'pod-3']
// The client waits longer than two round trips to Valkey and the pod may take together, or it would not hear what became of its request.
const patience = { requestTimeout: 5000, clientTimeout: 15_000 }
/** How long Valkey is away at least: until it is felt, or so that no pod has a lease left. */
const absences = { 'for a moment': 0, 'for longer than the ttl': 1.2 * ttl * 1000 }

for (const kind of kinds) {
  for (const [howLong, ms] of Object.entries(absences)) {
    test(`Valkey restarted empty, ${kind}: gone ${howLong} under load, the pods come back by heartbeat and each destination gets one pod anew`, async t => {
      // Beats far apart and long memories, so that for a while some know of the new binding of a destination and some go by the old one.
      const world = await setWorld(t, { kind, ttl, heartbeat: 800, cacheTtl, store: 'own', ...patience })
      const load = await startLoad(world, { destinations: 24, pace: 20 })
      await load.progress()
      await load.requests(500)

      const awayMs = await restartEmpty(world, ms, () => load.figures.failed('503') > 0)
      const backAt = performance.now()
      await until(async () => (await listLive(world)).join() === pods.join(), 'all pods are back')
      const beatMs = performance.now() - backAt
      await load.progress()
      const servedMs = performance.now() - backAt
      // Coordinators that remember a pod of before send there until their entries end.
      await until(() => performance.now() - backAt > cacheTtl, 'what coordinators remember of before is over')
      const isSettled = async (id: string): Promise<boolean> => (await world.ownersOf(id)).join() === load.servedBy(id)
      await until(async () => (await Promise.all(load.destinationIds.map(isSettled))).every(Boolean), 'each destination is served by the one pod it has')
      await load.requests(300)
      await world.finish(load, `Valkey restarted empty, gone ${howLong}`, { extra: { 'away ms': awayMs, 'pods back ms': beatMs, 'all served ms': servedMs } })

      for (const destinationId of load.destinationIds) assert.equal(load.servedBy(destinationId), (await world.ownerOf(destinationId)).name)
      // The member index as well is what the bindings are, although it began from nothing with pods and coordinators that were there before.
      const owned = await Promise.all(pods.map(async memberId => await world.registry.listOwned(memberId)))
      assert.deepEqual(owned.flat().sort(), load.destinationIds.sort())
      // Valkey away is not an answer that there is no tenant, and no pod's or coordinator's failure.
      assert.equal(load.figures.failed(''), load.figures.failed('503'))
    })
  }
}

test('Valkey restarted empty, storage-db: a tenant that nobody asked for meanwhile is served although its binding is gone', async t => {
  const world = await setWorld(t, { kind: 'storage-db', ttl, cacheTtl, store: 'own', ...patience })
  const load = await startStorageLoad(world, { destinations: 3 })
  const quiet = ['quiet-1', 'quiet-2', 'quiet-3']
  for (const tenantId of quiet) {
    assert.equal((await world.send('POST', `/tenants/${tenantId}`)).status, 201)
    const attempt = load.traffic.values.begin(`${tenantId}/key-1`, tenantId)
    const reply = await world.send('PUT', `/tenants/${tenantId}/keys/key-1`, { value: tenantId })
    assert.equal(reply.status, 204)
    attempt.acknowledged(reply.sentAt)
  }
  // For so long that no coordinator remembers where they were.
  await restartEmpty(world, cacheTtl, () => load.figures.failed('503') > 0)
  await load.progress()
  for (const tenantId of quiet) assert.deepEqual(await world.ownersOf(tenantId), [])

  for (const tenantId of quiet) {
    const { status, body } = await world.send('GET', `/tenants/${tenantId}/keys/key-1`)
    assert.equal(status, 200, JSON.stringify(body))
    load.traffic.values.read(`${tenantId}/key-1`, (body as { value: string }).value)
    await world.ownerOf(tenantId)
  }
  // Created once more it is the same tenant; and one that never was gets no binding that stays.
  assert.equal((await world.send('POST', '/tenants/quiet-1')).status, 200)
  assert.equal((await world.send('GET', '/tenants/nobody/keys/key-1')).status, 404)
  await until(async () => (await world.ownersOf('nobody')).length === 0, 'the binding of no tenant is given back')
  await world.finish(load, 'Valkey restarted empty, quiet tenants')
})

/** Ends Valkey with all its data, and starts it on its port once the clients have felt it. */
async function restartEmpty ({ parts: { ownStore } }: World, atLeastMs: number, isFelt: () => boolean): Promise<number> {
  assert.ok(ownStore)
  const killedAt = performance.now()
  await ownStore.kill()
  await until(() => isFelt() && performance.now() - killedAt >= atLeastMs, 'Valkey was away for long enough')
  await ownStore.start()
  return performance.now() - killedAt
}

async function listLive ({ registry }: World): Promise<string[]> {
  try {
    return (await registry.listLiveMembers()).map(({ memberId }) => memberId)
  } catch { // the registry of this test has not found Valkey again yet
    return []
  }
}
