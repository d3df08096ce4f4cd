import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { Client } from '../support/client.ts'
import { startLoad, startStatefulLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'

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
