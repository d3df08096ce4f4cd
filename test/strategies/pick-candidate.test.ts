import assert from 'node:assert/strict'
import test from 'node:test'
import { createStrategy } from '../../src/strategies/create-strategy.ts'
import { pickCandidate } from '../../src/strategies/pick-candidate.ts'
import type { AllocationStrategy, MemberInfo } from '../../src/types.ts'
import { candidate, context } from '../support/candidates.ts'

const candidates = [candidate('a', 1), candidate('b', 2)]
const returning = (pick: unknown): AllocationStrategy => ({ pick: () => pick as MemberInfo })

test('pickCandidate: without candidates no strategy is asked', () => {
  const strategy: AllocationStrategy = { pick () { throw new Error('asked') } }
  assert.equal(pickCandidate(strategy, [], context()), null)
})

test('pickCandidate: a built-in strategy gives one of the very candidates', () => {
  for (const name of ['round-robin', 'least-loaded', 'random'] as const) {
    assert.equal(pickCandidate(createStrategy(name), candidates, context({ turn: 0 })), candidates[0])
  }
})

test('pickCandidate: a strategy is called as a method, with all candidates and the context', () => {
  const seen: unknown[] = []
  class Pinned implements AllocationStrategy {
    readonly pinned = 'b'
    pick (offered: MemberInfo[], ctx: object): MemberInfo | null {
      seen.push(offered, ctx)
      return offered.find(({ memberId }) => memberId === this.pinned) ?? null
    }
  }
  const ctx = context({ destinationId: 'd', turn: 7 })
  assert.equal(pickCandidate(new Pinned(), candidates, ctx), candidates[1])
  assert.deepEqual(seen, [candidates, ctx])
})

test('pickCandidate: what a strategy does to the candidates it is given changes nothing for others', () => {
  const greedy: AllocationStrategy = {
    pick (offered) {
      for (const each of offered) Object.assign(each, { address: 'http://mine', load: -1 })
      return offered.sort(() => -1).splice(0)[1] ?? null
    }
  }
  const own = [candidate('a', 1), candidate('b', 2)]
  const pick = pickCandidate(greedy, own, context())
  assert.ok(pick && own.includes(pick))
  assert.deepEqual(own, [candidate('a', 1), candidate('b', 2)])
})

test('pickCandidate: null and undefined mean none (G48)', () => {
  for (const none of [null, undefined]) assert.equal(pickCandidate(returning(none), candidates, context()), null)
})

test('pickCandidate: a copy of a candidate stands for it, with the address that is known and no other', () => {
  assert.equal(pickCandidate(returning({ memberId: 'b' }), candidates, context()), candidates[1])
  assert.equal(pickCandidate(returning({ memberId: 'b', address: 'http://evil' }), candidates, context())?.address, 'http://b')
})

test('pickCandidate: anything that is not a candidate is refused, never a wrong pod (G48)', () => {
  for (const [pick, got] of [
    [{ memberId: 'c' }, '"c" (string)'], [{}, 'an object'], ['a', '"a" (string)'], [0, '0 (number)'], [1, '1 (number)'], [false, 'false (boolean)'], ['', '"" (string)'],
    [Promise.resolve(candidates[0]), 'a promise'], [[candidates[0]], 'an array'], [{ memberId: 0 }, '0 (number)'], [{ memberId: null }, 'an object']
  ]) {
    assert.throws(() => pickCandidate(returning(pick), candidates, context()), {
      code: 'PLT_COORDINATOR_NOT_A_CANDIDATE', message: `Expected the strategy to return one of its candidates or null at once, got ${String(got)}`
    })
  }
})

test('pickCandidate: what a strategy throws is the cause of a coded error, whatever it is (G48)', () => {
  for (const thrown of [new Error('mine'), 'text', null, 0]) {
    const strategy: AllocationStrategy = { pick () { throw thrown } }
    assert.throws(() => pickCandidate(strategy, candidates, context()), {
      code: 'PLT_COORDINATOR_STRATEGY_FAILED', message: 'The allocation strategy threw an error (see cause)', cause: thrown
    })
  }
})

test('pickCandidate: a strategy that wraps a built-in one picks as that one does', () => {
  const wrapped: AllocationStrategy = { pick: (offered, ctx) => createStrategy('least-loaded').pick(offered.filter(({ memberId }) => memberId !== 'a'), ctx) }
  assert.equal(pickCandidate(wrapped, candidates, context()), candidates[1])
})
