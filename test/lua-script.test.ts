import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { Redis } from 'iovalkey'
import type { Member, Registry } from '../src/index.ts'
import { failure } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import type { OwnStore } from './support/own-store.ts'
import { countCommands, setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const folder = new URL('../lua/', import.meta.url)
const scripts = readdirSync(folder).filter(name => name.endsWith('.lua')).map(name => name.slice(0, -'.lua'.length)).sort()

interface Stage {
  store: OwnStore
  scene: Scene
  registry: Registry
  /** Registered, with 'bound' as its destination. */
  member: Member
}

async function setStage (t: TestContext): Promise<Stage> {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { memberIndex: true, ttl: 600 })
  await member.addToDestination('bound')
  await scene.rawMember('pod-2', {}, 600)
  const registry = scene.registry({ memberIndex: true, cache: false })
  await registry.listLiveMembers()
  await until(async () => await scene.raw.exists(scene.key('features')) === 1, 'the features were checked')
  return { store, scene, registry, member }
}

/** For each file of lua/ a call that runs it, and what must be true afterwards. */
const uses: Record<string, (stage: Stage) => Promise<unknown>> = {
  bind: ({ registry }) => registry.addPodToDestination('new', 'pod-1'),
  claim: ({ registry }) => registry.resolveDestination('new', { claimOnMiss: true }),
  'declare-features': async ({ scene }) => {
    await scene.registry({ memberIndex: true, strictFeatures: true }).hasBinding('bound')
    return true
  },
  'deregister-destination': ({ registry }) => registry.deregisterDestination('bound'),
  'deregister-member': ({ member }) => member.deregister(),
  heartbeat: ({ member }) => member.heartbeat(),
  'list-members': async ({ registry }) => (await registry.listLiveMembers()).length === 2,
  prune: async ({ scene, registry }) => {
    await scene.raw.sadd(scene.key('destination', 'bound'), 'dead')
    await registry.resolveDestination('bound')
    await until(async () => (await scene.pods('bound')).length === 1, 'the dead pod is pruned')
    return true
  },
  'prune-members': async ({ scene, registry }) => {
    await scene.raw.sadd(scene.key('members'), 'dead')
    await registry.listLiveMembers()
    await until(async () => await scene.raw.sismember(scene.key('members'), 'dead') === 0, 'the dead member is pruned')
    return true
  },
  'register-lock': async ({ scene, member }) => {
    await member.registerLock('lock-1', 'bound')
    return await scene.raw.hget(scene.key('lock', 'lock-1'), 'podId') === 'pod-1'
  },
  'register-member': async ({ scene }) => {
    await scene.member('pod-3', { memberIndex: true }).register()
    return await scene.raw.sismember(scene.key('members'), 'pod-3') === 1
  },
  'release-locks': async ({ scene, member }) => {
    await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-1', destinationId: 'bound', incarnation: member.incarnation })
    return await member.unregisterLock('lock-1')
  },
  resolve: ({ registry }) => registry.resolveDestination('bound'),
  'resolve-lock': async ({ scene, registry }) => {
    await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-1', destinationId: 'bound' })
    return await registry.resolveLock('lock-1')
  },
  unbind: ({ registry }) => registry.removePodFromDestination('bound', 'pod-1')
}

async function knows (raw: Redis, script: string): Promise<boolean> {
  const sha1 = createHash('sha1').update(readFileSync(new URL(`${script}.lua`, folder))).digest('hex')
  return (await raw.script('EXISTS', sha1) as number[])[0] === 1
}

test('every file of lua/ has a use in this test', () => {
  assert.deepEqual(Object.keys(uses).sort(), scripts)
})

for (const script of scripts) {
  test(`${script}.lua runs on a store that does not know it (SCRIPT FLUSH): its text is sent, and is that of the file`, async t => {
    const stage = await setStage(t)
    await stage.scene.raw.script('FLUSH')

    const result = await uses[script]?.(stage)

    assert.ok(result, `the call of ${script} answered ${JSON.stringify(result)}`)
    assert.equal(await knows(stage.scene.raw, script), true)
  })
}

test('a store that restarted with its data knows no script: 50 callers at once and every other call are answered', async t => {
  const { store, scene, registry, member } = await setStage(t)
  await scene.raw.save()
  await store.kill()
  await store.start()
  await until(() => registry.hasBinding('bound').then(() => true, () => false), 'the registry is connected again')
  await until(() => member.unregisterLock('none').then(() => true, () => false), 'the member is connected again')
  assert.deepEqual([await knows(scene.raw, 'resolve'), await knows(scene.raw, 'claim'), await knows(scene.raw, 'heartbeat')], [false, false, false])

  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => registry.resolveDestination(i % 2 === 0 ? 'bound' : `new-${i}`, { claimOnMiss: true })))

  assert.ok(found.every((each, i) => each !== null && (i % 2 === 1 || each.memberId === 'pod-1')))
  assert.equal(await member.heartbeat(), true)
  assert.equal(await registry.removePodFromDestination('bound', 'pod-1'), true)
})

test('a script the store knows is sent by its digest alone', async t => {
  const { scene, registry } = await setStage(t)
  await registry.resolveDestination('bound')

  const counts = await countCommands(scene.raw, async () => {
    for (let i = 0; i < 20; i++) await registry.resolveDestination('bound')
  })

  assert.equal(counts.evalsha, 20)
  assert.equal(counts.eval, undefined)
})

test('SCRIPT FLUSH while 50 callers each claim, bind, read and beat: all are answered, once each', async t => {
  const { scene, registry } = await setStage(t)
  const members = await Promise.all(Array.from({ length: 10 }, (_, i) => scene.liveMember(`member-${i}`, { memberIndex: true, loadPerBinding: 0 })))
  await scene.raw.script('FLUSH')

  const flushing = scene.raw.script('FLUSH')
  const outcomes = await Promise.all(Array.from({ length: 50 }, async (_, i) => [
    await registry.resolveDestination(`tenant-${i}`, { claimOnMiss: true }).then(found => found !== null),
    await registry.addPodToDestination(`tenant-${i}`, 'pod-1'),
    (await registry.resolveDestination(`tenant-${i}`)) !== null,
    await members[i % 10]?.heartbeat()
  ]))
  await flushing

  for (const outcome of outcomes) assert.deepEqual(outcome, [true, true, true, true])
  for (let i = 0; i < 50; i++) {
    const pods = await scene.pods(`tenant-${i}`)
    assert.ok(pods.includes('pod-1') && pods.length <= 2, pods.join())
  }
})

test('script texts are constant: 200 destinations, pods and locks with ids of all kinds leave the store with the scripts of lua/ alone (G42)', async t => {
  const { scene, registry } = await setStage(t)
  await scene.raw.script('FLUSH')
  const ids = Array.from({ length: 200 }, (_, i) => [`tenant-${i}`, `'${i}"]]--`, `{${i}}:\n\0é`, `redis.call('FLUSHALL')${i}`][i % 4] as string)

  await Promise.all(ids.map(async (id, i) => {
    const member = i % 10 === 0 ? await scene.liveMember(id, { memberIndex: true, address: 'http://pod.test:3000' }) : null
    await registry.resolveDestination(id, { claimOnMiss: true, reassignOrphans: true })
    await registry.addPodToDestination(id, 'pod-1')
    await registry.resolveLock(id)
    await member?.registerLock(id, id, { [`field '${i}`]: id })
    await registry.resolveDestination(id)
    await registry.removePodFromDestination(id, 'pod-1')
  }))

  const cached = Number(/number_of_cached_scripts:(\d+)/.exec(await scene.raw.info('memory'))?.[1])
  const known = await Promise.all(scripts.map(script => knows(scene.raw, script)))
  assert.equal(cached, known.filter(Boolean).length)
  assert.ok(cached >= 6, `${cached} scripts ran`)
})

test('an error of a script is not taken for an unknown script: the text is not sent again', async t => {
  const { scene, registry } = await setStage(t)
  await registry.addPodToDestination('new', 'pod-1')
  await scene.raw.set(scene.key('destination', 'odd'), 'a string')

  const counts = await countCommands(scene.raw, async () => {
    const error = await failure(2000, 'bind', registry.addPodToDestination('odd', 'pod-1'), 'PLT_COORDINATOR_STORE_REFUSED')
    assert.match(error.message, /WRONGTYPE/)
    assert.ok(error.cause instanceof Error)
  })

  assert.equal(counts.eval, undefined)
  assert.equal(counts.evalsha, 1)
})

test('a write that was given up while the store was frozen is not sent again as a text when the store thaws without knowing it', async t => {
  const { store, scene, member } = await setStage(t)
  const registry = scene.registry({ storeTimeout: 400 })
  await registry.hasBinding('bound')
  await until(() => registry.hasBinding('bound'), 'the registry is connected')
  await scene.raw.script('FLUSH')

  store.freeze()
  await failure(400, 'addPodToDestination', registry.addPodToDestination('new', 'pod-1'), 'PLT_COORDINATOR_UNAVAILABLE')
  store.thaw()
  // Two round trips on the same connection: the second one comes after anything the first reply made the client send.
  for (let i = 0; i < 2; i++) await until(() => registry.hasBinding('new').then(() => true, () => false), 'the store answers')

  assert.deepEqual(await scene.pods('new'), [])
  assert.equal(await member.heartbeat(), true)
})
