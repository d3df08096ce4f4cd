import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { Registry } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { openReplyLink } from './support/reply-link.ts'
import type { ReplyLink } from './support/reply-link.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

interface LinkedScene {
  scene: Scene
  link: ReplyLink
  registry: Registry
  /** Sends a read that the store answers at once, and whose answer is still on its way when this resolves. */
  startRead (flags?: object): Promise<{ answer: Promise<string | undefined> }>
}

/** A destination on pod-1, and a registry whose replies can be held back. */
async function setLinkedScene (t: TestContext): Promise<LinkedScene> {
  const store = await startOwnStore(t)
  const link = await openReplyLink(t, store.url)
  const scene = setScene(t, store.url)
  for (const memberId of ['pod-1', 'pod-2']) await scene.rawMember(memberId, {}, 600)
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1')
  const registry = scene.registry({ redis: link.url, cache: { ttl: 600_000 }, storeTimeout: 20_000 })
  // Connected, features checked, the view fresh and every script known.
  await registry.resolveDestination('warm')
  await registry.resolveDestination('warm', both)
  await registry.addPodToDestination('warm', 'pod-1')
  await registry.removePodFromDestination('warm', 'pod-1')
  await registry.deregisterDestination('warm')
  await registry.listLiveMembers()
  await scene.raw.config('RESETSTAT')

  return {
    scene,
    link,
    registry,
    async startRead (flags = {}) {
      link.hold()
      const answer = registry.resolveDestination('d', flags).then(resolved => resolved?.memberId)
      await until(() => link.hasHeld, 'the reply is on its way')
      return { answer }
    }
  }
}

/** Scripts executed since the count was last set to 0. */
async function countScripts (scene: Scene): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await scene.raw.info('commandstats'))?.[1] ?? 0)
}

async function moveToPod2 (scene: Scene): Promise<void> {
  const key = scene.key('destination', 'd')
  await scene.raw.multi().del(key).sadd(key, 'pod-2').exec()
}

for (const flags of [{}, both]) {
  test(`resolveDestination: a read in flight while its id is evicted is not cached, with ${JSON.stringify(flags)}`, async t => {
    const { scene, link, registry, startRead } = await setLinkedScene(t)
    const { answer } = await startRead(flags)
    await moveToPod2(scene)
    registry.invalidateCache('d')
    link.release()

    assert.equal(await answer, 'pod-1', 'who asked before still gets the answer')

    assert.equal((await registry.resolveDestination('d', flags))?.memberId, 'pod-2')
  })

  test(`resolveDestination: a read in flight while its id is evicted is not joined by later callers, with ${JSON.stringify(flags)}`, async t => {
    const { scene, link, registry, startRead } = await setLinkedScene(t)
    const { answer } = await startRead(flags)
    const joined = registry.resolveDestination('d', flags)
    await moveToPod2(scene)
    registry.invalidateCache('d')
    const later = Promise.all(Array.from({ length: 50 }, () => registry.resolveDestination('d', flags)))
    link.release()

    assert.equal(await answer, 'pod-1')
    assert.equal((await joined)?.memberId, 'pod-1')
    assert.deepEqual([...new Set((await later).map(each => each?.memberId))], ['pod-2'])
    assert.equal((await registry.resolveDestination('d', flags))?.memberId, 'pod-2', 'what the later read found was kept')
  })
}

test('resolveDestination: an eviction marks the reads of its id with any flags, sent or gathered, and those of no other id', async t => {
  const { scene, link, registry, startRead } = await setLinkedScene(t)
  const move = async (id: string, memberId: string): Promise<unknown> =>
    await scene.raw.multi().del(scene.key('destination', id)).sadd(scene.key('destination', id), memberId).exec()
  await move('other', 'pod-1')
  const { answer } = await startRead({})
  const claims = [{ claimOnMiss: true }, { reassignOrphans: true }, both].map(flags => registry.resolveDestination('d', flags))
  const other = registry.resolveDestination('other')
  await until(async () => await countScripts(scene) >= 2, 'the read and the first claim were executed; the others wait for their answers')
  await move('d', 'pod-2')
  await move('other', 'pod-2')
  registry.invalidateCache('d')
  const joined = registry.resolveDestination('other')
  link.release()

  assert.equal(await answer, 'pod-1')
  assert.deepEqual((await Promise.all(claims)).map(found => found?.memberId), ['pod-1', 'pod-2', 'pod-2'])
  assert.deepEqual((await Promise.all([other, joined])).map(found => found?.memberId), ['pod-2', 'pod-2'])
  assert.equal(await countScripts(scene), 4, 'the two claims that waited went out together, and so did the reads of the other id')
  await move('d', 'pod-1')
  await move('other', 'pod-1')
  assert.equal((await registry.resolveDestination('d'))?.memberId, 'pod-1', 'none of the reads was kept')
  assert.equal((await registry.resolveDestination('other'))?.memberId, 'pod-2', 'this one was')
})

const writes: Record<string, (registry: Registry) => Promise<unknown>> = {
  addPodToDestination: registry => registry.addPodToDestination('d', 'pod-2'),
  removePodFromDestination: registry => registry.removePodFromDestination('d', 'pod-1'),
  deregisterDestination: registry => registry.deregisterDestination('d')
}

for (const [name, write] of Object.entries(writes)) {
  test(`resolveDestination: a read that was sent before ${name} is answered and not kept`, async t => {
    const { scene, link, registry, startRead } = await setLinkedScene(t)
    const { answer } = await startRead()
    const written = write(registry)
    await until(async () => (await scene.pods('d')).join() !== 'pod-1', 'the store has executed the write')
    link.release()
    assert.equal(await answer, 'pod-1')
    await written

    const pods = await scene.pods('d')
    const answers = new Set<string>()
    for (let i = 0; i < 2; i++) {
      const resolved = await registry.resolveDestination('d')
      if (resolved !== null) answers.add(resolved.memberId)
    }
    assert.deepEqual([...answers].sort(), pods)
  })
}

test('resolveDestination: of the callers that join a reassignment one hears of it, and a claim that is joined binds once', async t => {
  const { scene, link, registry } = await setLinkedScene(t)
  await scene.raw.multi().del(scene.key('destination', 'd')).sadd(scene.key('destination', 'd'), 'dead-1').exec()
  link.hold()
  const calls = Array.from({ length: 50 }, () => registry.resolveDestination('d', both))
  await until(() => link.hasHeld, 'the reply is on its way')
  link.release()

  const answers = await Promise.all(calls)

  const [owner] = await scene.pods('d')
  assert.deepEqual(answers[0], { address: `http://${owner}.test:3000`, memberId: owner, reassigned: true, previous: ['dead-1'] })
  for (const answer of answers.slice(1)) assert.deepEqual(answer, { address: `http://${owner}.test:3000`, memberId: owner, reassigned: false })
})

test('resolveDestination: callers that join one read of several pods are spread over them', async t => {
  const { scene, registry } = await setLinkedScene(t)
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-2')

  const answers = await Promise.all(Array.from({ length: 50 }, () => registry.resolveDestination('d')))

  for (const memberId of ['pod-1', 'pod-2']) assert.equal(answers.filter(each => each?.memberId === memberId).length, 25)
})

test('resolveDestination: an entry lasts from when the read was sent, however late its reply', async t => {
  const { scene, link, registry, startRead } = await setLinkedScene(t)
  await scene.raw.pexpire(scene.key('member', 'pod-1'), 1_000)
  const { answer } = await startRead()
  await until(async () => await scene.raw.exists(scene.key('member', 'pod-1')) === 0, 'the record expires while the reply is on its way')
  link.release()
  assert.equal(await answer, 'pod-1')

  assert.equal(await registry.resolveDestination('d'), null, 'pod-1 was not kept beyond its life')
})
