import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'

// So long that what happens within a drain is no work of an expired record.
const ttl = 60

for (const kind of kinds) {
  test(`drain, ${kind}: a pod that is asked to leave under load ends its work, hands its destinations on, and exits`, async t => {
    // A pod with memory refuses connections as soon as it has handed on: whatever is remembered of it has to go then, not in its time.
    const world = await setWorld(t, { kind, ttl, cacheTtl: kind === 'stateful' ? 60_000 : 500 })
    const load = await startLoad(world)
    await load.progress()
    const leaver = await world.ownerOf('destination-1')
    const affected = await world.registry.listOwned(leaver.name)
    assert.ok(affected.length > 0)

    const exit = await leaver.terminate()
    await load.progress()

    assert.equal(exit.code, 0)
    for (const destinationId of load.destinationIds) {
      const owner = await world.ownerOf(destinationId)
      assert.notEqual(owner.name, leaver.name)
      assert.equal(load.servedBy(destinationId), owner.name)
    }
    assert.deepEqual((await world.registry.listLiveMembers()).map(({ memberId }) => memberId).includes(leaver.name), false)
    await load.requests(200)
    await world.finish(load, 'drain', { affected, extra: { 'exit ms': exit.tookMs } })

    // The pod of storage-db goes on answering for as long as a coordinator may remember it. One with memory must not: it is done
    // with a destination before another pod may have it, and says so to those who ask in between.
    if (kind === 'storage-db') assert.deepEqual(load.figures.failures, {})
    else assert.equal(load.figures.failed(''), load.figures.failed('503 CLOSED') + load.figures.failed('503 DRAINING') + load.figures.failed('502'))
  })
}
