import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { Redis } from 'iovalkey'
import { isCoordinatorError } from '../src/index.ts'
import type { Member, Registry } from '../src/index.ts'
import { failure } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene } from './support/store.ts'
import type { Scene } from './support/store.ts'

const boundMs = 2000

/** Every key of the store with its whole value; ttls aside. */
async function readAll (raw: Redis): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const key of (await raw.keys('*')).sort()) {
    const type = await raw.type(key)
    found[key] = type === 'hash' ? await raw.hgetall(key) : type === 'set' ? (await raw.smembers(key)).sort() : await raw.get(key)
  }
  return found
}

/** A store with a live pod, a dead one that owns a destination, and every instance used once; `fill` puts it at maxmemory. */
async function setFullScene (t: TestContext): Promise<{ scene: Scene, registry: Registry, member: Member, fill: () => Promise<void>, empty: () => Promise<void> }> {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { memberIndex: true, ttl: 600 })
  const dead = await scene.liveMember('pod-dead', { memberIndex: true })
  await dead.addToDestination('orphaned')
  await dead.deregister()
  await member.addToDestination('bound')
  await member.registerLock('lock-1', 'bound')
  const registry = scene.registry({ memberIndex: true, cache: false, storeTimeout: boundMs })
  await registry.listLiveMembers()
  await registry.readBinding('bound')
  return {
    scene,
    registry,
    member,
    async fill () { await scene.raw.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '1') },
    async empty () { await scene.raw.config('SET', 'maxmemory', '0') }
  }
}

type Write = (registry: Registry, member: Member, scene: Scene) => Promise<unknown>

const refused: Record<string, Write> = {
  'a claim': registry => registry.resolveDestination('new', { claimOnMiss: true }),
  'a reassignment': registry => registry.resolveDestination('orphaned', { reassignOrphans: true }),
  'addPodToDestination to a new destination': registry => registry.addPodToDestination('new', 'pod-1'),
  'addPodToDestination beside another pod': registry => registry.addPodToDestination('orphaned', 'pod-1'),
  'member.addToDestination': (_registry, member) => member.addToDestination('new'),
  'register() of a new pod': (_registry, _member, scene) => scene.member('pod-2').register(),
  'register() of the successor of a live pod': (_registry, _member, scene) => scene.member('pod-1').register(),
  'registerLock of a new lock': (_registry, member) => member.registerLock('lock-2', 'bound'),
  'registerLock in place of another': (_registry, member) => member.registerLock('lock-1', 'other', { isolation: 'serializable' })
}

for (const [name, write] of Object.entries(refused)) {
  test(`a full store: ${name} rejects with a transient code and nothing is half written (G24)`, async t => {
    const { scene, registry, member, fill, empty } = await setFullScene(t)
    const before = await readAll(scene.raw)

    await fill()
    const error = await failure(boundMs, name, write(registry, member, scene), 'PLT_COORDINATOR_UNAVAILABLE')
    const after = await readAll(scene.raw)
    await empty()

    assert.match(error.message, /OOM/)
    assert.equal(error.statusCode, 503)
    assert.deepEqual(after, before)
    // The same call once there is room.
    await write(registry, member, scene)
    assert.notDeepEqual(await readAll(scene.raw), before)
  })
}

test('a full store: 50 claims and reassignments at once are all refused, each with its error, and write nothing (G24)', async t => {
  const { scene, registry, fill, empty } = await setFullScene(t)
  const before = await readAll(scene.raw)

  await fill()
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, (_, i) =>
    registry.resolveDestination(i % 2 === 0 ? 'orphaned' : `new-${i % 5}`, { claimOnMiss: true, reassignOrphans: true })))
  const after = await readAll(scene.raw)
  await empty()

  for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && isCoordinatorError(outcome.reason, 'PLT_COORDINATOR_UNAVAILABLE'))
  assert.deepEqual(after, before)
})

test('a full store: heartbeats of live pods renew record, load, draining flag and locks (G24)', async t => {
  const { scene, fill, empty } = await setFullScene(t)
  let load = 1
  const member = await scene.liveMember('pod-2', { ttl: 600, getLoad: () => load })
  await member.registerLock('lock-2', 'bound')
  await scene.raw.pexpire(scene.key('member', 'pod-2'), 5000)
  load = 7

  await fill()
  const isBeaten = await member.heartbeat()
  const isDraining = await member.setDraining(true)
  const record = await scene.raw.hgetall(scene.key('member', 'pod-2'))
  const ttlMs = await scene.raw.pttl(scene.key('member', 'pod-2'))
  await empty()

  assert.deepEqual([isBeaten, isDraining], [true, true])
  assert.equal(record.load, '7')
  assert.equal(record.draining, '1')
  assert.ok(ttlMs > 500_000)
})

test('a full store: the heartbeat of a pod whose record expired resolves to false, writes nothing, and restores it once there is room (G24)', async t => {
  const { scene, member, fill, empty } = await setFullScene(t)
  await scene.raw.del(scene.key('member', 'pod-1'))
  const before = await readAll(scene.raw)

  await fill()
  const isBeaten = await member.heartbeat()
  const after = await readAll(scene.raw)
  await empty()

  assert.equal(isBeaten, false)
  assert.deepEqual(after, before)
  assert.equal(await member.heartbeat(), true)
  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'address'), 'http://pod-1.test:3000')
})

test('a full store: what is bound resolves, and everything that takes away works (G24)', async t => {
  const { scene, registry, member, fill, empty } = await setFullScene(t)
  const fresh = scene.registry({ memberIndex: true, cache: false })

  await fill()
  const resolved = await fresh.resolveDestination('bound', { claimOnMiss: true, reassignOrphans: true })
  const lock = await fresh.resolveLock('lock-1')
  const outcomes = [
    await registry.removePodFromDestination('bound', 'pod-1'),
    await registry.deregisterDestination('orphaned'),
    await member.unregisterLock('lock-1'),
    await member.deregister()
  ]
  const left = await scene.keys()
  await empty()

  assert.equal(resolved?.memberId, 'pod-1')
  assert.equal(lock?.memberId, 'pod-1')
  assert.deepEqual(outcomes, [true, true, true, true])
  assert.deepEqual(left, ['features'])
})

test('a full store: a registry with strictFeatures that starts now still resolves and deregisters (G24)', async t => {
  const { scene, fill, empty } = await setFullScene(t)
  const strict = scene.registry({ memberIndex: true, strictFeatures: true })

  await fill()
  const outcome = await strict.resolveDestination('bound').then(resolved => resolved?.memberId, (error: Error) => error.message)
  const isDeregistered = await strict.deregisterDestination('orphaned').catch((error: Error) => error.message)
  await empty()

  assert.equal(outcome, 'pod-1')
  assert.equal(isDeregistered, true)
  assert.deepEqual(await scene.pods('orphaned'), [])
})
