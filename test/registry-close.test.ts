import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { isCoordinatorError } from '../src/index.ts'
import type { Registry } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { openReplyLink } from './support/reply-link.ts'
import { setScene, storeUrl, until } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }
const isClosed = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_CLOSED') && error.statusCode === 503

const calls: Record<string, (registry: Registry) => Promise<unknown>> = {
  'resolveDestination, cached': registry => registry.resolveDestination('d', both),
  resolveDestination: registry => registry.resolveDestination('new', both),
  resolveLock: registry => registry.resolveLock('lock'),
  listLiveMembers: registry => registry.listLiveMembers(),
  pickMember: registry => registry.pickMember(),
  addPodToDestination: registry => registry.addPodToDestination('d', 'pod-1'),
  removePodFromDestination: registry => registry.removePodFromDestination('d', 'pod-1'),
  hasBinding: registry => registry.hasBinding('d'),
  readBinding: registry => registry.readBinding('d'),
  deregisterDestination: registry => registry.deregisterDestination('d'),
  listOwned: registry => registry.listOwned('pod-1')
}

test('close: every later call rejects with PLT_COORDINATOR_CLOSED, the cached one too, and writes nothing', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { memberIndex: true })
  const registry = scene.registry({ memberIndex: true, cache: { ttl: 60_000 } })
  await registry.resolveDestination('d', both)
  const keys = await scene.keys()

  assert.equal(await registry.close(), undefined)

  for (const [name, call] of Object.entries(calls)) await assert.rejects(call(registry), isClosed, name)
  registry.invalidateCache('d')
  assert.deepEqual(await scene.keys(), keys)
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})

test('close: calls made before it has settled reject as well', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { memberIndex: true })
  const registry = scene.registry({ memberIndex: true, cache: { ttl: 60_000 } })
  await registry.resolveDestination('d', both)

  const closing = registry.close()
  const outcomes = Object.entries(calls).map(([name, call]) => assert.rejects(call(registry), isClosed, name))

  await Promise.all([closing, ...outcomes])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})

test('close: twice, one after the other and at once, settles', async t => {
  const scene = setScene(t)
  const [first, second] = [scene.registry(), scene.registry()]
  await first.hasBinding('d')
  await first.close()
  await first.close()
  await Promise.all([second.close(), second.close(), second.close()])
  await second.close()
})

test('close: calls under way settle, each with its answer or as closed, and none is half done', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()
  await registry.listLiveMembers()
  const ids = Array.from({ length: 50 }, (_, i) => `d${i}`)
  const pending = ids.map(id => registry.resolveDestination(id, both))

  await Promise.resolve() // they are sent
  await registry.close()

  const outcomes = await Promise.allSettled(pending)
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') {
      assert.equal(outcome.value?.memberId, 'pod-1')
      assert.deepEqual(await scene.pods(ids[i] as string), ['pod-1'])
    } else {
      assert.ok(isClosed(outcome.reason), String(outcome.reason))
    }
  }
  assert.ok(outcomes.some(outcome => outcome.status === 'fulfilled'), 'those that were sent get their answer')
})

test('close: the connection that was opened is gone, and background work was awaited', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'dead-1')
  await scene.raw.sadd(scene.key('members'), 'dead-1')
  const registry = scene.registry({ redisOptions: { connectionName: scene.keyPrefix } })
  await registry.resolveDestination('d')
  await registry.listLiveMembers()

  await registry.close()

  assert.deepEqual(await scene.pods('d'), ['pod-1'])
  assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
  await until(async () => !String(await scene.raw.client('LIST')).includes(`name=${scene.keyPrefix}`), 'the connection is gone')
})

test('close: of a registry that was never used, and right after construction, settles', async t => {
  const scene = setScene(t)
  await scene.registry().close()
  const refused = scene.registry({ redis: 'redis://127.0.0.1:1', storeTimeout: 200 })
  await refused.close()
  await assert.rejects(refused.hasBinding('d'), isClosed)
})

test('close: with the store frozen it settles in time, and so do the calls under way', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const registry = scene.registry({ storeTimeout: 300 })
  await registry.hasBinding('d')
  store.freeze()
  t.after(() => store.thaw())
  const pending = Promise.allSettled(Array.from({ length: 50 }, (_, i) => registry.resolveDestination(`d${i}`, both)))

  const startedAt = performance.now()
  await Promise.all([registry.close(), registry.close()])

  assert.ok(performance.now() - startedAt < 10_000)
  for (const outcome of await pending) {
    assert.equal(outcome.status, 'rejected')
    assert.ok(isClosed(outcome.reason) || isCoordinatorError(outcome.reason, 'PLT_COORDINATOR_UNAVAILABLE'), String(outcome.reason))
  }
  await assert.rejects(registry.hasBinding('d'), isClosed)
})

for (const isOwn of [true, false]) {
  test(`close: a claim between its list and its claim is finished, with ${isOwn ? 'an own' : 'a shared'} connection, and later calls are refused meanwhile`, async t => {
    const scene = setScene(t)
    await scene.liveMember('pod-1')
    const link = await openReplyLink(t, storeUrl)
    const client = new Redis(link.url)
    t.after(() => client.disconnect())
    const registry = scene.registry(isOwn ? { redis: link.url } : { redis: client })
    await registry.hasBinding('d')
    await scene.raw.script('LOAD', readFileSync(new URL('../lua/claim.lua', import.meta.url), 'utf8'))

    link.hold()
    const claims = Array.from({ length: 50 }, (_, i) => registry.resolveDestination(`d${i % 10}`, both))
    await until(() => link.hasHeld, 'the list is on its way')
    const closing = registry.close()
    await assert.rejects(registry.resolveDestination('later', both), isClosed)
    link.release()

    assert.deepEqual(new Set((await Promise.all(claims)).map(each => each?.memberId)), new Set(['pod-1']))
    await closing
    await assert.rejects(registry.hasBinding('d'), isClosed)
    assert.deepEqual(await scene.pods('later'), [])
  })
}

test('close: a list of 450 members, which takes several round trips, is finished', async t => {
  const scene = setScene(t)
  for (let i = 0; i < 450; i++) await scene.rawMember(`pod-${i}`)
  const registry = scene.registry({ cache: false })
  await registry.hasBinding('d')

  const list = registry.listLiveMembers()
  await Promise.resolve() // it is sent
  await registry.close()

  assert.equal((await list).length, 450)
})
