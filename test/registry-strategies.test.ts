import assert from 'node:assert/strict'
import test from 'node:test'
import { createStrategy, isCoordinatorError } from '../src/index.ts'
import type { AllocationStrategy, Candidate, CoordinatorErrorCode, MemberInfo, StrategyContext } from '../src/index.ts'
import { openReplyLink } from './support/reply-link.ts'
import { setScene, storeUrl, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }
const hasCode = (code: CoordinatorErrorCode) => (error: unknown): boolean => isCoordinatorError(error, code)

async function setPods (t: Parameters<typeof setScene>[0]): Promise<Scene> {
  const scene = setScene(t)
  for (const memberId of ['pod-1', 'pod-2', 'pod-3']) await scene.liveMember(memberId)
  await scene.raw.sadd(scene.key('destination', 'bound'), 'pod-1')
  await scene.raw.sadd(scene.key('destination', 'wide'), 'pod-1', 'pod-2')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'dead-1')
  return scene
}

const answers = (pick: unknown): AllocationStrategy => ({ pick: () => pick as MemberInfo })

for (const nothing of [null, undefined]) {
  test(`strategy: one that returns ${nothing} gets null, and nothing is bound (G48)`, async t => {
    const scene = await setPods(t)
    const registry = scene.registry({ strategy: answers(nothing) })

    for (const id of ['new', 'orphan', 'wide']) assert.equal(await registry.resolveDestination(id, both), null, id)
    assert.equal(await registry.pickMember(), null)
    assert.equal((await registry.resolveDestination('bound', both))?.memberId, 'pod-1')

    assert.deepEqual([await scene.pods('new'), await scene.pods('orphan'), await scene.pods('wide')], [[], ['dead-1'], ['pod-1', 'pod-2']])
  })
}

test('strategy: one that throws rejects the call that needed it, with its error as the cause, and no other (G48)', async t => {
  const scene = await setPods(t)
  const cause = new Error('on purpose')
  const registry = scene.registry({ strategy: { pick () { throw cause } } })
  const isOurs = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_STRATEGY_FAILED') && error.cause === cause

  for (const id of ['new', 'orphan', 'wide']) await assert.rejects(registry.resolveDestination(id, both), isOurs, id)
  await assert.rejects(registry.pickMember(), isOurs)

  assert.equal((await registry.resolveDestination('bound', both))?.memberId, 'pod-1', 'its speculative pick does not matter')
  assert.equal(await registry.resolveDestination('unknown'), null)
  assert.deepEqual([await scene.pods('new'), await scene.pods('orphan')], [[], ['dead-1']])
})

const strangers: unknown[] = [
  { memberId: 'stranger', address: 'http://stranger.test', load: 0, draining: false }, 'pod-1', 1, true, false, {}, [], { memberId: 7 },
  Promise.resolve({ memberId: 'pod-1' }), ''
]

test('strategy: anything that is no candidate rejects the call, and nothing is bound (G48)', async t => {
  const scene = await setPods(t)
  for (const stranger of strangers) {
    const registry = scene.registry({ strategy: answers(stranger) })
    for (const id of ['new', 'orphan', 'wide']) {
      await assert.rejects(registry.resolveDestination(id, both), hasCode('PLT_COORDINATOR_NOT_A_CANDIDATE'), JSON.stringify(stranger))
    }
    await assert.rejects(registry.pickMember(), hasCode('PLT_COORDINATOR_NOT_A_CANDIDATE'))
    assert.equal((await registry.resolveDestination('bound', both))?.memberId, 'pod-1')
  }
  assert.deepEqual([await scene.pods('new'), await scene.pods('orphan')], [[], ['dead-1']])
})

test('strategy: a pod that is live but not among the candidates is refused (G48)', async t => {
  const scene = await setPods(t)
  const draining = await scene.liveMember('draining')
  await draining.setDraining(true)
  const isRefused = hasCode('PLT_COORDINATOR_NOT_A_CANDIDATE')
  const pick = (memberId: string): AllocationStrategy => answers({ memberId, address: `http://${memberId}.test:3000`, load: 0, draining: false })

  await assert.rejects(scene.registry({ strategy: pick('draining') }).resolveDestination('new', both), isRefused)
  await assert.rejects(scene.registry({ strategy: pick('pod-3') }).resolveDestination('wide', both), isRefused)
  assert.deepEqual(await scene.pods('new'), [])
})

test('strategy: it is offered copies of the live, undraining pods by memberId, and a context; a pick that is a copy will do', async t => {
  const scene = await setPods(t)
  const draining = await scene.liveMember('draining')
  await draining.setDraining(true)
  const heard: { candidates: Candidate[], ctx: StrategyContext }[] = []
  const strategy: AllocationStrategy = {
    pick (candidates, ctx) {
      heard.push({ candidates: candidates.map(candidate => ({ ...candidate })), ctx })
      const pick = { ...candidates.find(candidate => candidate.memberId === 'pod-2') as Candidate, address: 'http://evil.test' }
      // Whatever it does to what it was given concerns nobody.
      candidates.sort((a, b) => a.memberId < b.memberId ? 1 : -1)
      for (const candidate of candidates) Object.assign(candidate, { memberId: 'evil', address: 'http://evil.test', load: NaN, draining: true })
      candidates.length = 0
      return pick
    }
  }
  const registry = scene.registry({ strategy })
  const offered = (...memberIds: string[]): object[] => memberIds.map(memberId => ({ memberId, address: `http://${memberId}.test:3000`, load: 0, pending: 0, draining: false }))
  const expected = { address: 'http://pod-2.test:3000', memberId: 'pod-2', reassigned: false }

  assert.deepEqual(await registry.resolveDestination('new', both), expected)
  assert.deepEqual(await registry.resolveDestination('wide'), expected)
  assert.deepEqual(await registry.resolveDestination('wide'), expected, 'from the cache')
  assert.deepEqual(await registry.pickMember({ destinationId: 'x' }), { memberId: 'pod-2', address: 'http://pod-2.test:3000', load: 0, draining: false })

  const pods = [offered('pod-1', 'pod-2', 'pod-3'), offered('pod-1', 'pod-2'), offered('pod-1', 'pod-2')]
  for (const [i, candidates] of pods.entries()) {
    const got = heard[i]?.candidates.map(candidate => ({ ...candidate, pending: 0 }))
    assert.deepEqual(got, candidates)
  }
  assert.deepEqual(heard.map(each => each.ctx.destinationId), ['new', 'wide', 'wide', 'x'])
  for (const { ctx } of heard) {
    assert.ok(Number.isInteger(ctx.turn) && ctx.turn >= 0)
    const random = ctx.random()
    assert.ok(random >= 0 && random < 1)
  }
  assert.equal(heard[2]?.ctx.turn, (heard[1]?.ctx.turn as number) + 1)
})

test('strategy: one that pins tenants never gets another pod, and hears of a refused pick by its absence', async t => {
  const scene = await setPods(t)
  const asked: string[][] = []
  const registry = scene.registry({
    strategy: {
      pick (candidates, { destinationId }) {
        asked.push(candidates.map(candidate => candidate.memberId))
        const wanted = destinationId?.startsWith('pinned') ? ['pod-1'] : ['pod-1', 'pod-2', 'pod-3']
        return candidates.find(candidate => wanted.includes(candidate.memberId)) ?? null
      }
    }
  })
  assert.equal((await registry.resolveDestination('pinned-1', both))?.memberId, 'pod-1')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'draining', '1') // after the view was read
  asked.length = 0

  assert.equal(await registry.resolveDestination('pinned-2', both), null)
  assert.deepEqual(asked, [['pod-1', 'pod-2', 'pod-3'], ['pod-2', 'pod-3']])
  assert.deepEqual(await scene.pods('pinned-2'), [])
  assert.equal((await registry.resolveDestination('free', both))?.memberId, 'pod-2')
})

test('strategy: a refused pick is not offered again in this call, although the pod stopped draining meanwhile', async t => {
  const scene = await setPods(t)
  const link = await openReplyLink(t, storeUrl)
  const registry = scene.registry({ redis: link.url, strategy: { pick: candidates => candidates[0] } })
  await registry.resolveDestination('warm', both)
  await registry.listLiveMembers()
  await scene.raw.hset(scene.key('member', 'pod-1'), 'draining', '1')
  link.hold()
  const answer = registry.resolveDestination('new', both)
  await until(() => link.hasHeld, 'the refusal is on its way')
  await scene.raw.hdel(scene.key('member', 'pod-1'), 'draining')
  link.release()

  assert.equal((await answer)?.memberId, 'pod-2')
  assert.deepEqual(await scene.pods('new'), ['pod-2'])
})

test('strategy: a built-in one can be wrapped by name, and its pick is sent alone', async t => {
  const scene = await setPods(t)
  for (const memberId of ['pod-1', 'pod-2', 'pod-3']) await scene.raw.hset(scene.key('member', memberId), 'load', memberId === 'pod-2' ? 1 : 2)
  const inner = createStrategy('least-loaded')
  const registry = scene.registry({ strategy: { pick: (candidates, ctx) => inner.pick(candidates.filter(candidate => candidate.memberId !== 'pod-3'), ctx) } })
  await registry.listLiveMembers()
  assert.equal((await registry.resolveDestination('a', both))?.memberId, 'pod-2')
  await scene.raw.hset(scene.key('member', 'pod-3'), 'load', 0)
  await scene.raw.hset(scene.key('member', 'pod-2'), 'load', 100)
  assert.notEqual((await registry.resolveDestination('b', both))?.memberId, 'pod-3')
})

test('strategy: an unknown name, or an object without a pick function, is refused at construction', t => {
  const scene = setScene(t)
  for (const strategy of ['', 'least', 'toString', '__proto__', null, 7, {}, { pick: 'me' }, () => null]) {
    assert.throws(() => scene.registry({ strategy: strategy as AllocationStrategy }), error =>
      isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION') && /^Expected strategy to be one of/.test(error.message))
    assert.throws(() => createStrategy(strategy as 'random'), hasCode('PLT_COORDINATOR_INVALID_OPTION'))
  }
})

test('fanOutStrategy: chooses for each request among the pods of a destination, and never where one is bound', async t => {
  const scene = await setPods(t)
  const asked: string[][] = []
  const registry = scene.registry({
    strategy: { pick: candidates => candidates[2] },
    fanOutStrategy: {
      pick (candidates, { turn }) {
        asked.push(candidates.map(({ memberId }) => memberId))
        return candidates[turn % 2]
      }
    }
  })

  for (const id of ['new', 'orphan']) assert.equal((await registry.resolveDestination(id, both))?.memberId, 'pod-3', id)
  assert.equal((await registry.pickMember())?.memberId, 'pod-3')
  assert.deepEqual(asked, [])
  const picks = new Set<string | undefined>()
  for (let i = 0; i < 4; i++) picks.add((await registry.resolveDestination('wide', both))?.memberId)
  assert.deepEqual([...picks].sort(), ['pod-1', 'pod-2'])
  assert.deepEqual(asked, Array.from({ length: 4 }, () => ['pod-1', 'pod-2']))
})

test('fanOutStrategy: least-loaded places by load and round-robin spreads, where a load that is cached would draw all requests', async t => {
  const scene = await setPods(t)
  for (const [memberId, load] of [['pod-1', 9], ['pod-2', 1], ['pod-3', 5]] as const) await scene.raw.hset(scene.key('member', memberId), 'load', load)
  const registry = scene.registry({ strategy: 'least-loaded', fanOutStrategy: 'round-robin' })

  assert.equal((await registry.resolveDestination('new', both))?.memberId, 'pod-2')
  const picks: (string | undefined)[] = []
  for (let i = 0; i < 6; i++) picks.push((await registry.resolveDestination('wide', both))?.memberId)
  assert.deepEqual(picks.sort(), ['pod-1', 'pod-1', 'pod-1', 'pod-2', 'pod-2', 'pod-2'])
})

test('fanOutStrategy: an unknown one is refused at construction, by its name', t => {
  const scene = setScene(t)
  assert.throws(() => scene.registry({ fanOutStrategy: 'least' as 'random' }), error =>
    isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION') && /^Expected fanOutStrategy to be one of/.test(error.message))
})
