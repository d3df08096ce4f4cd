import assert from 'node:assert/strict'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { until } from '../../test/support/store.ts'
import { readOwners } from '../support/read-owners.ts'
import { startLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const pods = ['pod-1', 'pod-2', 'pod-3']
const others = ['pod-4', 'pod-5', 'pod-6']

for (const kind of kinds) {
  test(`all pods at once, ${kind}: killed together and started again under their ids, each has what it had`, async t => {
    // So long that no record expires before its pod is there again.
    const world = await setWorld(t, { kind, ttl: 30, heartbeat: 500 })
    const load = await startLoad(world)
    await load.progress()
    const owners = await readOwners(world, load.destinationIds)

    await Promise.all(world.livePods.map(async pod => await pod.kill()))
    const goneAt = performance.now()
    await Promise.all(pods.map(async memberId => await world.addPod(memberId)))
    await load.progress()
    const servedMs = performance.now() - goneAt
    await load.requests(200)
    await world.finish(load, 'all pods killed, same ids', { extra: { 'all served ms': servedMs } })

    assert.deepEqual(await readOwners(world, load.destinationIds), owners)
    for (const [destinationId, owner] of owners) assert.equal(load.servedBy(destinationId), owner)
  })

  test(`all pods at once, ${kind}: killed together and replaced by others, their destinations move by themselves and leave nothing behind`, async t => {
    const world = await setWorld(t, { kind, ttl: 2 })
    const load = await startLoad(world)
    await load.progress()

    await Promise.all(world.livePods.map(async pod => await pod.kill()))
    const goneAt = performance.now()
    await Promise.all(others.map(async memberId => await world.addPod(memberId)))
    await load.progress()
    const servedMs = performance.now() - goneAt
    await assertMoved(world, load.destinationIds)
    await load.requests(200)
    await world.finish(load, 'all pods killed, other ids', { extra: { 'all served ms': servedMs } })
    for (const [destinationId, owner] of await readOwners(world, load.destinationIds)) assert.equal(load.servedBy(destinationId), owner)
  })

  test(`all pods at once, ${kind}: asked to leave together and replaced by others, they all exit, and their destinations move by themselves`, async t => {
    // So long that it is no expired record that frees a destination.
    const world = await setWorld(t, { kind, ttl: 30, heartbeat: 500 })
    const load = await startLoad(world)
    await load.progress()

    const exits = await Promise.all(world.livePods.map(async pod => await pod.terminate()))
    assert.deepEqual(exits.map(({ code }) => code), [0, 0, 0])
    assert.deepEqual(await world.registry.listLiveMembers(), [])
    // Nobody is there, and that is what the client hears.
    const { failures } = load.figures
    await until(() => (load.figures.failures['503 NOT_FOUND'] ?? 0) >= (failures['503 NOT_FOUND'] ?? 0) + load.destinationIds.length, 'no pod is there for any destination')
    const startedAt = performance.now()
    await Promise.all(others.map(async memberId => await world.addPod(memberId)))
    await load.progress()
    const servedMs = performance.now() - startedAt
    await assertMoved(world, load.destinationIds)
    await load.requests(200)
    await world.finish(load, 'all pods asked to leave', { extra: { 'longest exit ms': Math.max(...exits.map(({ tookMs }) => tookMs)), 'all served ms': servedMs } })
    for (const [destinationId, owner] of await readOwners(world, load.destinationIds)) assert.equal(load.servedBy(destinationId), owner)
  })
}

/** Looks at the keys themselves: each destination has one of the new pods alone, and of the old ones nothing is left. */
async function assertMoved (world: World, destinationIds: string[]): Promise<void> {
  const { name, redisUrl } = world.parts
  for (const destinationId of destinationIds) {
    const memberIds = await world.ownersOf(destinationId)
    assert.ok(memberIds.length === 1 && others.includes(memberIds[0] ?? ''), `${destinationId} is bound to ${memberIds.join()}`)
  }
  const client = new Redis(redisUrl, { maxRetriesPerRequest: 1 })
  world.onClose(() => client.disconnect())
  await until(async () => (await client.smembers(`${name}:members`)).sort().join() === others.join(), 'only the new pods are listed')
  for (const memberId of pods) {
    assert.equal(await client.exists(`${name}:member:${memberId}`, `${name}:owned:${memberId}`), 0, `keys of ${memberId} are left`)
  }
}
