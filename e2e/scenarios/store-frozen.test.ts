import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import type { Load } from '../support/load.ts'
import { readOwners } from '../support/read-owners.ts'
import { startLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

// The library bounds a round trip to Valkey (storeTimeout, 2 s), and a claim that needs the list of members first has two. The client waits longer
// than these and the pod may take together: a request that nobody ends shows as one without an answer.
const patience = { requestTimeout: 5000, clientTimeout: 15_000 }

for (const kind of kinds) {
  test(`Valkey frozen, ${kind}: for less than the ttl, requests end with 503 in bounded time, and no destination moves`, async t => {
    const world = await setWorld(t, { kind, ttl: 30, heartbeat: 500, store: 'own', ...patience })
    const load = await startLoad(world)
    await load.progress()
    const owners = await readOwners(world, load.destinationIds)

    const freeze = await freezeStore(world, load, 0)
    await load.progress()
    await load.requests(200)
    await world.finish(load, 'Valkey frozen for less than the ttl', { extra: freeze })

    assert.deepEqual(await readOwners(world, load.destinationIds), owners)
    for (const [destinationId, owner] of owners) assert.equal(load.servedBy(destinationId), owner)
    assert.equal(load.figures.failed(''), load.figures.failed('503 UNAVAILABLE'))
  })

  test(`Valkey frozen, ${kind}: for longer than the ttl, requests end with 503 in bounded time, and all is served again by itself`, async t => {
    const ttl = 2
    const world = await setWorld(t, { kind, ttl, store: 'own', ...patience })
    const load = await startLoad(world)
    await load.progress()

    const freeze = await freezeStore(world, load, 1.5 * ttl * 1000)
    const thawedAt = performance.now()
    await load.progress()
    const servedMs = performance.now() - thawedAt
    await load.requests(200)
    await world.finish(load, 'Valkey frozen for longer than the ttl', { extra: { ...freeze, 'all served ms': servedMs } })

    for (const destinationId of load.destinationIds) assert.equal(load.servedBy(destinationId), (await world.ownerOf(destinationId)).name)
    assert.equal(load.figures.failed(''), load.figures.failed('503'))
  })
}

/** Stops Valkey in its tracks until the clients have felt it, and for so long at least. */
async function freezeStore (world: World, load: Load, atLeastMs: number): Promise<Record<string, number>> {
  const { ownStore } = world.parts
  assert.ok(ownStore)
  await world.pause(ownStore)
  const frozenAt = performance.now()
  await until(() => load.figures.failed('503') >= load.destinationIds.length, 'the clients have felt it')
  // By now nothing is remembered, so each of these asks Valkey.
  const path = world.kind === 'stateful' ? '/destination-1' : '/tenants/destination-1/keys'
  const replies = await Promise.all(world.urls.map(url => world.send('GET', path, undefined, url)))
  for (const { status } of replies) assert.equal(status, 503)
  await until(() => performance.now() - frozenAt >= atLeastMs, 'Valkey was frozen for long enough')
  world.resume(ownStore)
  return { 'frozen ms': performance.now() - frozenAt, 'longest answer ms': Math.max(...replies.map(({ sentAt, endedAt }) => endedAt - sentAt)) }
}
