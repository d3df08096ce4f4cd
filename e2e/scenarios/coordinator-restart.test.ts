import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { readOwners } from '../support/read-owners.ts'
import { startLoad } from '../support/start-load.ts'
import type { Exit, TestProcess } from '../support/processes.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { Kind } from '../support/world.ts'

const ends = {
  'is killed': async (coordinator: TestProcess) => await coordinator.kill(),
  'is asked to leave': async (coordinator: TestProcess) => await coordinator.terminate()
}

for (const kind of kinds) {
  for (const [how, end] of Object.entries(ends)) {
    test(`coordinator restart, ${kind}: one of two ${how} under load and starts anew, and each pod keeps what it has`, async t => await restart(t, kind, how, end))
  }
}

async function restart (t: TestContext, kind: Kind, how: string, end: (coordinator: TestProcess) => Promise<Exit>): Promise<void> {
  // So long that no binding moves because a busy machine kept a pod from beating.
  const world = await setWorld(t, { kind, ttl: 30, heartbeat: 500, requestTimeout: 10_000 })
  const load = await startLoad(world)
  await load.progress()
  const owners = await readOwners(world, load.destinationIds)
  const [leaver, other] = world.coordinators as [TestProcess, TestProcess]

  const exit = await end(leaver)
  // All of them by the other one.
  assert.deepEqual(world.urls, [other.address])
  await load.progress()
  const { failures } = load.figures

  const successor = await world.addCoordinator()
  // It knows nothing but what Valkey tells it.
  for (const destinationId of load.destinationIds) {
    const path = kind === 'stateful' ? `/${destinationId}` : `/tenants/${destinationId}/keys`
    const { status, headers, body } = await world.send('GET', path, undefined, successor.address)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(kind === 'stateful' ? (body as { memberId: string }).memberId : headers['x-storage-pod'], owners.get(destinationId))
  }
  await load.progress()
  await load.requests(200)
  await world.finish(load, `coordinator ${how}`, { extra: { 'exit ms': exit.tookMs } })

  assert.deepEqual(await readOwners(world, load.destinationIds), owners)
  for (const [destinationId, owner] of owners) assert.equal(load.servedBy(destinationId), owner)
  // Only who was talking to the one that went noticed, and nobody after it was gone.
  assert.deepEqual(load.figures.failures, failures)
  assert.equal(load.figures.failed(''), load.figures.failed('none') + load.figures.failed('refused') + load.figures.failed('503'))
  if (how === 'is killed') assert.equal(load.figures.failed('503'), 0)
}
