import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { diagnosticsChannels } from '../src/index.ts'
import type { ResolveOptions } from '../src/index.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

test('resolveDestination: a first touch binds one live pod and answers with its address', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()

  const resolved = await registry.resolveDestination('tenant-1', { claimOnMiss: true })

  assert.deepEqual(resolved, { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
})

const flagSets: ResolveOptions[] = [{}, { claimOnMiss: true }, { reassignOrphans: true }, { claimOnMiss: true, reassignOrphans: true }]

/** What a destination's set holds before the call; the pods of the scene are live-1, live-2, draining-1, draining-2. */
interface Case {
  title: string
  bound: string[]
  /** Who may answer; none: null. */
  expected: (flags: ResolveOptions) => string[]
  /** The set afterwards; absent: as it was. `answer` stands for the pod that answered. */
  left?: (flags: ResolveOptions, answer: string) => string[]
}

const takers = ['live-1', 'live-2']
const cases: Case[] = [
  {
    title: 'an empty set',
    bound: [],
    expected: flags => flags.claimOnMiss ? takers : [],
    left: (flags, answer) => flags.claimOnMiss ? [answer] : []
  },
  { title: 'one live pod', bound: ['live-2'], expected: () => ['live-2'] },
  { title: 'two live pods', bound: ['live-1', 'live-2'], expected: () => takers },
  { title: 'a live and a dead pod', bound: ['dead-1', 'live-1'], expected: () => ['live-1'], left: () => ['live-1'] },
  { title: 'a live and a draining pod', bound: ['draining-1', 'live-1'], expected: () => ['live-1'] },
  { title: 'a draining pod', bound: ['draining-1'], expected: () => ['draining-1'] },
  { title: 'two draining pods', bound: ['draining-1', 'draining-2'], expected: () => ['draining-1', 'draining-2'] },
  { title: 'a draining and a dead pod', bound: ['dead-1', 'draining-1'], expected: () => ['draining-1'], left: () => ['draining-1'] },
  {
    title: 'two dead pods',
    bound: ['dead-1', 'dead-2'],
    expected: flags => flags.reassignOrphans ? takers : [],
    left: (flags, answer) => flags.reassignOrphans ? [answer] : ['dead-1', 'dead-2']
  }
]

for (const { title, bound, expected, left } of cases) {
  for (const flags of flagSets) {
    test(`resolveDestination: ${title}, with ${JSON.stringify(flags)}`, async t => {
      const scene = await setTable(t)
      if (bound.length > 0) await scene.raw.sadd(scene.key('destination', 'd'), ...bound)
      const registry = scene.registry()

      const resolved = await registry.resolveDestination('d', flags)

      const allowed = expected(flags)
      const answer = resolved?.memberId ?? ''
      if (allowed.length === 0) {
        assert.equal(resolved, null)
      } else {
        assert.ok(allowed.includes(answer), `${answer} is none of ${allowed}`)
        const isReassigned = bound.length > 0 && bound.every(memberId => memberId.startsWith('dead'))
        const { previous, ...rest } = resolved ?? {}
        assert.deepEqual(rest, { address: `http://${answer}.test:3000`, memberId: answer, reassigned: isReassigned })
        assert.deepEqual(previous?.sort(), isReassigned ? bound : undefined)
        assert.equal('previous' in (resolved ?? {}), isReassigned)
      }
      await registry.close() // waits for the pruning
      assert.deepEqual(await scene.pods('d'), left?.(flags, answer) ?? bound)
      assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['draining-1', 'draining-2', 'live-1', 'live-2'])
      const sets = (await scene.keys()).filter(key => key.startsWith('destination:'))
      assert.deepEqual(sets, (await scene.pods('d')).length > 0 ? ['destination:d'] : [])
    })
  }
}

async function setTable (t: Parameters<typeof setScene>[0]): Promise<Scene> {
  const scene = setScene(t)
  for (const memberId of takers) await scene.liveMember(memberId)
  for (const memberId of ['draining-1', 'draining-2']) {
    const member = await scene.liveMember(memberId)
    await member.setDraining(true)
  }
  return scene
}

test('resolveDestination: nothing can be claimed where all pods drain, and nothing is written', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  await member.setDraining(true)
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  const registry = scene.registry()

  assert.equal(await registry.resolveDestination('new', { claimOnMiss: true }), null)
  assert.equal(await registry.resolveDestination('orphan', { reassignOrphans: true }), null)

  assert.deepEqual(await scene.keys(), ['destination:orphan', 'features', 'member:pod-1', 'members'])
  assert.deepEqual(await scene.pods('orphan'), ['dead-1'])
})

test('resolveDestination: a pod that starts to drain after the view was read is refused by the script, and another one is bound', async t => {
  const scene = setScene(t)
  const first = await scene.liveMember('pod-1')
  const registry = scene.registry({ strategy: 'round-robin' })
  await registry.resolveDestination('warm', { claimOnMiss: true })
  await scene.liveMember('pod-2')
  await first.setDraining(true)

  const resolved = await registry.resolveDestination('tenant-1', { claimOnMiss: true })

  assert.deepEqual(resolved, { address: 'http://pod-2.test:3000', memberId: 'pod-2', reassigned: false })
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-2'])
})

test('resolveDestination: the destinations of a pod that drains keep resolving to it until it deregisters', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1')
  const registry = scene.registry({ cache: false })
  await registry.resolveDestination('d', { claimOnMiss: true })
  await scene.liveMember('pod-2')
  await member.setDraining(true)
  const flags = { claimOnMiss: true, reassignOrphans: true }

  assert.deepEqual(await registry.resolveDestination('d', flags), { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
  await member.deregister()
  assert.deepEqual(await registry.resolveDestination('d', flags), {
    address: 'http://pod-2.test:3000', memberId: 'pod-2', reassigned: true, previous: ['pod-1']
  })
  assert.deepEqual(await scene.pods('d'), ['pod-2'])
})

test('resolveDestination: a registry that saw no pod binds to the first one that registers', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  assert.equal(await registry.resolveDestination('d', { claimOnMiss: true }), null)
  assert.deepEqual(await scene.keys(), ['features'])

  await scene.liveMember('pod-1')

  assert.equal((await registry.resolveDestination('d', { claimOnMiss: true }))?.memberId, 'pod-1')
})

test('resolveDestination: pruned dead pods are gone from the set and published as a diagnostics event', async t => {
  const scene = setScene(t)
  const events: unknown[] = []
  const hear = (event: unknown): void => { if ((event as { keyPrefix: string }).keyPrefix === scene.keyPrefix) events.push(event) }
  subscribe(diagnosticsChannels.prune, hear)
  t.after(() => unsubscribe(diagnosticsChannels.prune, hear))
  await scene.liveMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'dead-1', 'dead-2')
  const registry = scene.registry()

  await registry.resolveDestination('d')

  await until(() => events.length > 0, 'the pruning is published')
  assert.deepEqual(events, [{ keyPrefix: scene.keyPrefix, destinationId: 'd', count: 2 }])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})
