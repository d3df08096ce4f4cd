import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { readOwners } from '../support/read-owners.ts'
import { startLoad } from '../support/start-load.ts'
import { kinds, setWorld } from '../support/world.ts'

// immediate: as when PostgreSQL crashes, it recovers from its log; fast: connections are broken off and all is written out.
for (const kind of kinds) {
  for (const mode of ['immediate', 'fast'] as const) {
    test(`PostgreSQL restarted, ${kind}: after three stops (${mode}) under load no acknowledged write is lost, the pods find it again, and no destination moves`, async t => {
      // So long that no binding moves because a busy machine kept a pod from beating.
      const world = await setWorld(t, { kind, ttl: 30, heartbeat: 500, requestTimeout: 10_000, postgres: 'own' })
      const load = await startLoad(world, { pace: 10 })
      await load.progress()
      const owners = await readOwners(world, load.destinationIds)
      const { ownPostgres } = world.parts
      assert.ok(ownPostgres)

      let [awayMs, servedMs] = [0, 0]
      for (let i = 0; i < 3; i++) {
        const stoppedAt = performance.now()
        await ownPostgres.stop(mode)
        // Away for so long that pools have lost their connections, and found that there are no new ones.
        const failed = load.figures.failed('')
        await until(() => load.figures.failed('') >= failed + 2 * load.destinationIds.length, 'requests fail because PostgreSQL is away')
        await ownPostgres.start()
        const backAt = performance.now()
        await load.progress()
        awayMs = Math.max(awayMs, backAt - stoppedAt)
        servedMs = Math.max(servedMs, performance.now() - backAt)
      }
      await load.requests(200)
      await world.finish(load, `PostgreSQL restarted (${mode})`, { extra: { 'away ms': awayMs, 'all served ms': servedMs } })

      assert.deepEqual(await readOwners(world, load.destinationIds), owners)
      for (const [destinationId, owner] of owners) assert.equal(load.servedBy(destinationId), owner)
      // Each failure is an answer of a pod, which says whether the write may have been made. (No process ended: the world looks at its end.)
      assert.equal(load.figures.failed(''), load.figures.failed('503'))
    })
  }
}
