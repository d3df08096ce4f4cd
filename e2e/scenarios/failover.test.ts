import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'

for (const kind of kinds) {
  test(`failover, ${kind}: the destinations of a pod that is killed under load are served by others, and nothing is lost`, async t => {
    const world = await setWorld(t, { kind, ttl: 2, cacheTtl: 60_000 })
    const load = await startLoad(world)
    await load.progress()
    const victim = await world.ownerOf('destination-1')
    const affected = await world.registry.listOwned(victim.name)

    await victim.kill()
    await load.progress()

    for (const destinationId of load.destinationIds) {
      const owner = await world.ownerOf(destinationId)
      assert.notEqual(owner.name, victim.name)
      assert.equal(load.servedBy(destinationId), owner.name)
    }
    // A while longer, in which a late request of before, or a cache that forgot nothing, would do its damage.
    await load.requests(300)
    await world.finish(load, 'failover', { affected })
    assert.ok(affected.length > 0)
  })
}
