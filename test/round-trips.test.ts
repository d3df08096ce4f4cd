import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { Redis } from 'iovalkey'
import type { Registry } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

interface Watched {
  scene: Scene
  registry: Registry
  /** Names of the commands that clients sent while the work was done, in order; what scripts call is not among them. */
  commandsDuring (work: () => Promise<unknown>): Promise<string[]>
  /** Ends the watch: a MONITOR costs the server time with every command a script calls. */
  stopWatching (): void
}

/** A store that a MONITOR watches, and a registry that is connected, has checked its features and has a fresh view of 3 pods. */
async function watch (t: TestContext, podCount = 3): Promise<Watched> {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const adding = scene.raw.pipeline()
  for (let i = 0; i < podCount; i++) {
    const record = { address: `http://pod-${i}.test:3000`, load: i }
    adding.sadd(scene.key('members'), `pod-${i}`).hset(scene.key('member', `pod-${i}`), record).expire(scene.key('member', `pod-${i}`), 600)
  }
  await adding.exec()
  await scene.raw.sadd(scene.key('destination', 'bound'), 'pod-0')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  const registry = scene.registry({ cache: { ttl: 600_000 } })
  await registry.resolveDestination('bound')
  await registry.resolveLock('none')
  await registry.resolveDestination('warm', { claimOnMiss: true })
  await registry.addPodToDestination('warm', 'pod-1')
  await registry.removePodFromDestination('warm', 'pod-1')
  await registry.deregisterDestination('warm')
  await registry.listLiveMembers()

  const monitor: Redis = await scene.raw.monitor()
  t.after(() => monitor.disconnect())
  let heard: string[] = []
  monitor.on('monitor', (_time: string, [name, argument]: string[], source: string) => {
    if (source !== 'lua' && name !== undefined) heard.push(name === 'echo' ? String(argument) : name.toLowerCase())
  })
  let lastMark = 0
  const mark = async (): Promise<void> => {
    const text = `mark-${++lastMark}`
    await scene.raw.echo(text)
    await until(() => heard.includes(text), 'the monitor has heard of all before')
  }
  return {
    scene,
    registry,
    stopWatching: () => monitor.disconnect(),
    async commandsDuring (work) {
      await mark()
      heard = []
      await work()
      await mark()
      return heard.slice(0, -1)
    }
  }
}

test('round trips: a cached resolve costs none, whatever its flags', async t => {
  const { registry, commandsDuring } = await watch(t)
  assert.deepEqual(await commandsDuring(async () => {
    for (let i = 0; i < 50; i++) await registry.resolveDestination('bound', i % 2 === 0 ? both : {})
  }), [])
})

test('round trips: a miss costs one', async t => {
  const { scene, registry, commandsDuring } = await watch(t)
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-0', 'pod-1')
  for (const flags of [{}, both]) {
    registry.invalidateCache('d')
    assert.deepEqual(await commandsDuring(async () => { assert.notEqual(await registry.resolveDestination('d', flags), null) }), ['evalsha'])
  }
  assert.deepEqual(await commandsDuring(() => registry.resolveDestination('unknown')), ['evalsha'])
})

test('round trips: a first touch and a reassignment cost one while the view of the members is fresh', async t => {
  const { registry, commandsDuring } = await watch(t)
  for (const id of ['new', 'orphan']) {
    await registry.listLiveMembers() // the view is fresh
    const commands = await commandsDuring(async () => {
      const resolved = await registry.resolveDestination(id, both)
      assert.equal(resolved?.reassigned, id === 'orphan')
    })
    assert.deepEqual(commands, ['evalsha'])
  }
})

test('round trips: resolveLock costs one, each time', async t => {
  const { scene, registry, commandsDuring } = await watch(t)
  await scene.raw.hset(scene.key('lock', 'l'), { podId: 'pod-0', destinationId: 'bound' })
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(await commandsDuring(async () => { assert.notEqual(await registry.resolveLock('l'), null) }), ['evalsha'])
  }
})

test('round trips: each write and each plain question costs one', async t => {
  const { registry, commandsDuring } = await watch(t)
  assert.deepEqual(await commandsDuring(() => registry.addPodToDestination('d', 'pod-1')), ['evalsha'])
  assert.deepEqual(await commandsDuring(() => registry.readBinding('d')), ['evalsha'])
  assert.deepEqual(await commandsDuring(() => registry.hasBinding('d')), ['exists'])
  assert.deepEqual(await commandsDuring(() => registry.removePodFromDestination('d', 'pod-1')), ['evalsha'])
  assert.deepEqual(await commandsDuring(() => registry.deregisterDestination('bound')), ['evalsha'])
  assert.deepEqual(await commandsDuring(() => registry.listLiveMembers()), ['evalsha'])
  assert.deepEqual(await commandsDuring(() => registry.pickMember()), ['evalsha'])
})

test('round trips: 1,000 concurrent misses of one id in one registry cost one (G18)', async t => {
  const { scene, registry, commandsDuring } = await watch(t)
  for (const [id, flags] of [['warm', {}], ['new', both], ['orphan', both]] as const) {
    if (id === 'warm') await scene.raw.sadd(scene.key('destination', id), 'pod-1')
    await registry.listLiveMembers() // the view is fresh
    const commands = await commandsDuring(async () => {
      const answers = await Promise.all(Array.from({ length: 1000 }, () => registry.resolveDestination(id, flags)))
      assert.equal(new Set(answers.map(answer => answer?.memberId)).size, 1)
      assert.notEqual(answers[999], null)
    })
    assert.deepEqual(commands, ['evalsha'], id)
  }
  assert.equal((await scene.pods('new')).length, 1)
})

test('round trips: a first registry pays for its features and its first view alone', async t => {
  const { scene, commandsDuring } = await watch(t)
  const registry = scene.registry()
  const commands = await commandsDuring(() => Promise.all(Array.from({ length: 100 }, (_, i) => registry.resolveDestination(`d${i}`, both))))
  const scripts = commands.filter(name => name === 'evalsha')
  assert.equal(scripts.length, 1 + 1 + 1 + 4, 'features, view, the first destination, and the other 99 by 32')
  assert.deepEqual(commands.filter(name => name !== 'evalsha' && name !== 'info' && name !== 'client'), [])
})

test('round trips: listLiveMembers of 1,000 pods costs at most 11, and no script holds the server for more than 1 ms', async t => {
  const { scene, registry, commandsDuring, stopWatching } = await watch(t, 1000)
  const commands = await commandsDuring(async () => { assert.equal((await registry.listLiveMembers()).length, 1000) })
  assert.ok(commands.length <= 11, `${commands.length} round trips`)
  assert.deepEqual([...new Set(commands)], ['evalsha'])

  // A busy machine takes the processor from the server in the middle of scripts, which only ever makes them longer: the quietest of
  // ten rounds counts.
  stopWatching()
  await scene.raw.config('SET', 'slowlog-log-slower-than', '1000')
  await scene.raw.config('SET', 'slowlog-max-len', '10000')
  const medians: number[] = []
  const slowShares: number[] = []
  for (let round = 0; round < 10; round++) {
    await scene.raw.slowlog('RESET')
    await scene.raw.config('RESETSTAT')
    for (let i = 0; i < 10; i++) await registry.listLiveMembers()
    const calls = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await scene.raw.info('commandstats'))?.[1])
    assert.equal(calls, 10 * commands.length)
    slowShares.push(Number(await scene.raw.slowlog('LEN')) / calls)
    medians.push(Number(/latency_percentiles_usec_evalsha:p50=([\d.]+)/.exec(await scene.raw.info('latencystats'))?.[1]))
  }
  assert.ok(Math.min(...medians) > 0 && Math.min(...medians) < 1000, `half of the scripts took ${Math.min(...medians)} µs or more`)
  assert.ok(Math.min(...slowShares) < 0.05, `${Math.min(...slowShares)} of the scripts took more than 1 ms`)
  t.diagnostic(`least p50 ${Math.min(...medians)} µs, least share over 1 ms ${Math.min(...slowShares)}`)
})
