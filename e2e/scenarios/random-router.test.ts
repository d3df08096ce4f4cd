import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import { setWorld } from '../support/world.ts'

// So long that no pod loses its record, however busy the machine is; with heartbeats as usual.
const ttl = 20

// The control: without it a ledger that finds nothing proves nothing.
test('random router: the ledger finds that requests of one destination went to several pods', async t => {
  const world = await setWorld(t, { kind: 'stateful', router: 'random', ttl, heartbeat: 400 })
  const load = await startLoad(world)
  await load.progress()
  await load.requests(400)
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
  const world = await setWorld(t, { kind: 'stateful', ttl, heartbeat: 400 })
  const load = await startLoad(world)
  await load.progress()
  await load.requests(400)
  await world.finish(load, 'real router')
  assert.equal(load.figures.failed(''), 0)
})
