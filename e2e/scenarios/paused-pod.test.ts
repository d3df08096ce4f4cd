import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { Client } from '../support/client.ts'
import type { TestProcess } from '../support/processes.ts'
import { startLoad, startStatefulLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const ttl = 2
// Nothing refuses a connection here: what a coordinator remembers of the pod must not outlive its record.
const cacheTtl = 60_000

for (const kind of kinds) {
  test(`paused pod, ${kind}: a pod that is stopped past its ttl under load is replaced, and does no harm when it goes on`, async t => {
    const world = await setWorld(t, { kind, ttl, cacheTtl })
    const load = await startLoad(world)
    await load.progress()
    const sleeper = await world.ownerOf('destination-1')
    const affected = await world.registry.listOwned(sleeper.name)

    await world.pause(sleeper)
    await load.progress()
    const owners = new Map<string, string>()
    for (const destinationId of load.destinationIds) owners.set(destinationId, (await world.ownerOf(destinationId)).name)
    assert.ok(![...owners.values()].includes(sleeper.name))

    world.resume(sleeper)
    await until(async () => (await world.registry.listLiveMembers()).some(({ memberId }) => memberId === sleeper.name), 'the pod is back')
    await load.progress()
    await load.requests(200)

    // It is a pod without destinations now.
    for (const [destinationId, owner] of owners) assert.equal((await world.ownerOf(destinationId)).name, owner)
    assert.deepEqual(await world.registry.listOwned(sleeper.name), [])
    await world.finish(load, 'paused pod', { affected })
    for (const destinationId of affected) assert.notEqual(load.servedBy(destinationId), sleeper.name)
  })
}

test('paused pod, stateful: what lay in its sockets when it goes on is not served from its old memory', async t => {
  const world = await setWorld(t, { kind: 'stateful', ttl, cacheTtl })
  const load = await startStatefulLoad(world)
  await load.progress()
  const sleeper = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(sleeper.name)
  await world.pause(sleeper)

  // As a coordinator sends them that read the binding just before, by connections that the kernel accepts while the process stands still.
  const patient = new Client(60_000)
  world.onClose(() => patient.close())
  const late = affected.map(destinationId => ({ destinationId, attempt: load.traffic.numbers.begin(destinationId) }))
  const replies = late.map(({ destinationId, attempt }) => patient.send('POST', `${sleeper.address}/${destinationId}`, attempt.writeId))
  await load.progress()
  world.resume(sleeper)

  for (const [i, reply] of (await Promise.all(replies)).entries()) {
    assert.equal(reply.status, 503, JSON.stringify(reply.body))
    assert.match((reply.body as { code: string }).code, /^(LAPSED|QUIET)$/)
    late[i]?.attempt.refused() // a number taken for it all the same is found in the log
  }
  await load.requests(200)
  await world.finish(load, 'paused pod with late requests', { affected })
})

/** Resolves when a pod that was resumed has taken up its work again. */
async function untilAwake (world: World, { address }: TestProcess): Promise<void> {
  const direct = new Client(10_000)
  world.onClose(() => direct.close())
  await until(async () => (await direct.send('GET', `${address}/health`)).status === 200, 'the pod goes on')
}

async function create (world: World): Promise<void> {
  await until(async () => [200, 201].includes((await world.send('POST', '/tenants/x')).status as number), 'the tenant is there')
}

// The ledger cannot hold these two: an old value that lands right after the pause counts there as one that nobody was told of.

test('paused pod, storage-db: writes that lay in its sockets do not undo what was acknowledged since', async t => {
  const world = await setWorld(t, { kind: 'storage-db', ttl, cacheTtl, requestTimeout: 2000 })
  await create(world)
  const sleeper = await world.ownerOf('x')
  await world.pause(sleeper)
  const keys = Array.from({ length: 20 }, (_, i) => `/tenants/x/keys/${i}`)
  const late = await Promise.all(keys.map(key => world.send('PUT', key, { value: 'given up' })))
  assert.deepEqual([...new Set(late.map(({ status }) => status))], [504])
  for (const key of keys) await until(async () => (await world.send('PUT', key, { value: 'acknowledged' })).status === 204, 'another pod takes the write')

  world.resume(sleeper)
  await untilAwake(world, sleeper)

  for (let round = 0; round < 20; round++) {
    for (const key of keys) assert.deepEqual((await world.send('GET', key)).body, { value: 'acknowledged', encoding: 'text' })
  }
})

test('paused pod, storage-db: a delete that lay in its socket does not take a tenant that was created anew since', async t => {
  const world = await setWorld(t, { kind: 'storage-db', ttl, cacheTtl, requestTimeout: 2000 })
  await create(world)
  const sleeper = await world.ownerOf('x')
  await world.pause(sleeper)
  assert.equal((await world.send('DELETE', '/tenants/x')).status, 504)
  // 404: one that was given up had been done.
  await until(async () => [204, 404].includes((await world.send('DELETE', '/tenants/x')).status as number), 'another pod deletes the tenant')
  await create(world)
  await until(async () => (await world.send('PUT', '/tenants/x/keys/a', { value: 'acknowledged' })).status === 204, 'the new tenant takes a write')

  world.resume(sleeper)
  await untilAwake(world, sleeper)

  for (let round = 0; round < 50; round++) assert.deepEqual((await world.send('GET', '/tenants/x/keys/a')).body, { value: 'acknowledged', encoding: 'text' })
})
