import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import { setWorld } from '../support/world.ts'

// So long that no pod loses its record, however busy the machine is. After a heartbeat a pod drops what is not bound to it, which for a random
// router is all it has: with fewer of them than usual the damage does not depend on how much gets done in between.
const settings = { kind: 'stateful', ttl: 60, heartbeat: 10_000 } as const
/** Writes of each destination at least: that one of 3 pods, drawn at random, never gives a number out again in so many is out of the question. */
const rounds = 25

// The control: without it a ledger that finds nothing proves nothing.
test('random router: the ledger finds that requests of one destination went to several pods', async t => {
  const world = await setWorld(t, { ...settings, router: 'random' })
  const load = await startLoad(world)
  for (let round = 0; round < rounds; round++) await load.progress()
  await load.stop()
  await load.traffic.compare()

  const { findings, figures } = load
  t.diagnostic(figures.line('random router, stateful', { uncertainWrites: load.traffic.uncertainWrites, uncertainLeft: load.traffic.uncertain.length, extra: findings.counts }))
  // Numbers that two pods gave out, and pods that took turns: for every destination, or it was luck.
  for (const rule of ['repeated', 'interleaving'] as const) {
    const subjects = new Set(findings.all.filter(finding => finding.rule === rule).map(({ subject }) => subject))
    assert.deepEqual([...subjects].sort(), load.destinationIds.sort(), `${rule}: ${findings}`)
  }
})

test('random router: the same run with the real router has no findings', async t => {
  const world = await setWorld(t, settings)
  const load = await startLoad(world)
  for (let round = 0; round < rounds; round++) await load.progress()
  await world.finish(load, 'real router')
  assert.equal(load.figures.failed(''), 0)
})
