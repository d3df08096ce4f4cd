import assert from 'node:assert/strict'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { until } from '../../test/support/store.ts'
import { Client } from '../support/client.ts'
import { Load } from '../support/load.ts'
import { startLoad, startStatefulLoad, startStorageLoad } from '../support/start-load.ts'
import type { TestProcess } from '../support/processes.ts'
import { kinds, setWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

// So long that no record expires: what is seen is the work of the memberId being taken over.
const long = { ttl: 30, heartbeat: 500 }
// Longer than a busy machine needs for an answer, so that no 504 is counted where no pod is stopped.
const patience = { requestTimeout: 10_000 }

for (const kind of kinds) {
  test(`same id on another port, ${kind}: a pod that is killed and starts again before its record expires is reached there, and keeps its destinations`, async t => {
    const world = await setWorld(t, { kind, ...long, ...patience })
    const load = await startLoad(world)
    await load.progress()
    const victim = await world.ownerOf('destination-1')
    const affected = await world.registry.listOwned(victim.name)

    await victim.kill()
    const diedAt = performance.now()
    const successor = await world.addPod(victim.name)
    const readyMs = performance.now() - diedAt
    await load.progress()
    const servedMs = performance.now() - diedAt
    await load.requests(300)
    await world.finish(load, 'same id after a kill', { affected, extra: { 'ready again ms': readyMs, 'all served ms': servedMs } })

    await assertTakenOver(world, load, affected, victim, successor)
    assert.equal(load.figures.failed(''), load.figures.failed('502'))
  })
}

test('same id on another port, stateful: every answer of a memberId is from the latest process, which knows nothing of the memory before', async t => {
  const world = await setWorld(t, { kind: 'stateful', ...long, ...patience })
  const load = await startStatefulLoad(world)
  await load.progress()
  const { name } = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(name)
  for (let i = 0; i < 3; i++) {
    await world.pod(name).kill()
    await world.addPod(name)
    await load.progress()
  }
  await world.finish(load, 'same id after three kills', { affected })

  const { owners } = load.traffic
  assert.equal(owners.incarnations(name).length, 4) // in the order of time, or the ledger has a finding
  for (const destinationId of affected) assert.deepEqual(owners.succession(destinationId), [name])
})

// Until its next heartbeat a process does not know that another has its memberId, and no lease of its own tells it: the record that it counts
// on is renewed by the other. A stateful pod then counts on in its memory for as long as coordinators remember its address, beside the new one.
// Without fencing that cannot be prevented; it can be waited for. So nothing is asked for in this time, and what holds is: once it knows, never again.
test('same id on another port, stateful: a process that lives on serves nothing from the heartbeat on that tells it of its successor', async t => {
  const world = await setWorld(t, { kind: 'stateful', ...long, ...patience })
  const load = await startStatefulLoad(world)
  await load.progress()
  const old = await world.ownerOf('destination-1')
  const affected = await world.registry.listOwned(old.name)
  await load.stop()

  const successor = await world.addPod(old.name)
  const readyAt = performance.now()
  const direct = new Client(5000)
  world.onClose(() => direct.close())
  await until(async () => (await direct.send('GET', `${old.address}/destination-1`)).status === 503, 'the old process knows')
  const knewMs = performance.now() - readyAt

  const { traffic, findings } = load
  const second = new Load({ traffic, findings, coordinators: () => world.urls, lanes: 12, paceMs: 40, readShare: 0.25 })
  world.onClose(() => second.stop())
  for (const destinationId of affected) {
    const attempt = traffic.numbers.begin(destinationId)
    const { status, body } = await direct.send('POST', `${old.address}/${destinationId}`, attempt.writeId)
    assert.deepEqual([status, (body as { code: string }).code], [503, 'LAPSED'])
    attempt.refused() // a number taken for it all the same is found in the log
  }
  await second.progress()
  await second.requests(300)
  await world.finish(second, 'same id beside a process that lives', { affected, extra: { 'known after ms': knewMs } })

  await assertTakenOver(world, second, affected, old, successor)
  assert.equal(traffic.owners.incarnations(old.name).length, 2)
  assert.equal(second.figures.failed(''), second.figures.failed('503 LAPSED'))
})

// Awake before its lease ends it would serve from it until its next heartbeat; see above.
test('same id on another port, stateful: a process that is stopped past its lease wakes beside its successor and serves nothing', async t => {
  const world = await setWorld(t, { kind: 'stateful', pods: 2, ...long })
  const ttl = 3
  const old = await world.addPod('pod-3', { TTL: String(ttl) })
  const load = await startStatefulLoad(world)
  await load.progress()
  const affected = await world.registry.listOwned(old.name)

  await world.pause(old)
  const pausedAt = performance.now()
  // The next process has to be there before the record expires, however long a busy machine takes to start it.
  const client = new Redis(world.parts.redisUrl)
  assert.equal(await client.pexpire(`${world.parts.name}:member:${old.name}`, 60_000), 1)
  client.disconnect()
  const successor = await world.addPod(old.name)
  await load.progress()
  const patient = new Client(60_000)
  world.onClose(() => patient.close())
  const late = affected.map(destinationId => ({ destinationId, attempt: load.traffic.numbers.begin(destinationId) }))
  const replies = late.map(({ destinationId, attempt }) => patient.send('POST', `${old.address}/${destinationId}`, attempt.writeId))
  await until(() => performance.now() - pausedAt > ttl * 1000, 'the lease of the stopped process is over')
  world.resume(old)

  for (const [i, { status, body }] of (await Promise.all(replies)).entries()) {
    assert.deepEqual([status, (body as { code: string }).code], [503, 'LAPSED'])
    late[i]?.attempt.refused()
  }
  await load.progress()
  await load.requests(200)
  await world.finish(load, 'same id beside a process that is stopped', { affected })

  await assertTakenOver(world, load, affected, old, successor)
  assert.equal(load.traffic.owners.incarnations(old.name).length, 2)
  // It stays so: each heartbeat of its would be refused, and it sends none.
  const { status, body } = await patient.send('GET', `${old.address}/${affected[0]}`)
  assert.deepEqual([status, (body as { code: string }).code], [503, 'LAPSED'])
})

// A pod of storage-db remembers nothing that could be old: each statement is PostgreSQL's. Beside its successor it does no harm, and it leaves.
for (const isStopped of [false, true]) {
  test(`same id on another port, storage-db: a process that ${isStopped ? 'is stopped while another takes its place' : 'lives on'} finds its successor and ends by itself, and nothing is lost`, async t => {
    const world = await setWorld(t, { kind: 'storage-db', cacheTtl: 1500, ...long, ...isStopped ? {} : patience })
    const load = await startStorageLoad(world)
    await load.progress()
    const old = await world.ownerOf('destination-1')
    const affected = await world.registry.listOwned(old.name)

    if (isStopped) await world.pause(old)
    const successor = await world.addPod(old.name)
    if (isStopped) {
      await load.progress()
      world.resume(old)
    }
    // No signal that says anything to it: the process ends because it wants to. It is called in time: for as long as it answers what
    // coordinators still send it, it is there.
    const exit = await old.terminate('SIGCONT')
    await load.progress()
    await load.requests(300)
    await world.finish(load, `same id beside a process that ${isStopped ? 'is stopped' : 'lives'}`, { affected, extra: { 'left after ms': exit.tookMs } })

    await assertTakenOver(world, load, affected, old, successor)
    if (!isStopped) assert.deepEqual(load.figures.failures, {})
  })
}

/** The destinations are where they were by name, and the name is the new process. */
async function assertTakenOver (world: World, load: Load, affected: string[], old: TestProcess, successor: TestProcess): Promise<void> {
  assert.ok(affected.length > 0)
  assert.notEqual(successor.address, old.address)
  assert.deepEqual((await world.registry.listOwned(old.name)).sort(), affected.sort())
  for (const destinationId of affected) {
    const [bound] = await world.binding(destinationId)
    assert.deepEqual([bound?.memberId, bound?.member?.address, bound?.member?.draining], [old.name, successor.address, false])
    assert.equal(load.servedBy(destinationId), old.name)
  }
}
