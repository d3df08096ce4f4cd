import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { isLoadAware, leastLoaded } from '../../src/strategies/least-loaded.ts'
import { rankedLoad } from '../../src/strategies/ranked-load.ts'
import { candidate, context } from '../support/candidates.ts'

const ids = (candidates: { memberId: string }[]): string => candidates.map(({ memberId }) => memberId).join('')

test('least-loaded: takes the least load + pending, fractions and negative numbers included (G11)', () => {
  assert.equal(leastLoaded.pick([candidate('a', 0.9), candidate('b', 0.1)], context())?.memberId, 'b')
  assert.equal(leastLoaded.pick([candidate('a', 0.5), candidate('b', 0.1, 0.5)], context())?.memberId, 'a')
  assert.equal(leastLoaded.pick([candidate('a', 0), candidate('b', -1)], context())?.memberId, 'b')
})

test('least-loaded: a load that is no finite number ranks behind every number, at any turn (G11)', () => {
  for (const load of [NaN, Infinity, -Infinity]) {
    for (const turn of [0, 1, 2]) {
      const candidates = [candidate('a', load), candidate('b', 1e308), candidate('c', load)]
      assert.equal(leastLoaded.pick(candidates, context({ turn }))?.memberId, 'b')
      assert.equal(leastLoaded.shortlist(candidates, context({ turn }), 3)[0]?.memberId, 'b')
    }
    assert.equal(leastLoaded.pick([candidate('a', load)], context())?.memberId, 'a', 'alone it still serves')
  }
})

test('least-loaded: equal loads are taken in turn', () => {
  const candidates = [candidate('a', 1), candidate('b', 5), candidate('c', 1), candidate('d', 1)]
  const picks = [0, 1, 2, 3, 4].map(turn => leastLoaded.pick(candidates, context({ turn }))?.memberId)
  assert.deepEqual(picks, ['a', 'c', 'c', 'd', 'a'])
  const allNaN = [candidate('a', NaN), candidate('b', NaN)]
  assert.deepEqual([0, 1, 2].map(turn => leastLoaded.pick(allNaN, context({ turn }))?.memberId), ['a', 'b', 'a'])
})

test('least-loaded: the shortlist has the best first, no more than asked for, equal ones from the turn on', () => {
  const candidates = [candidate('a', 3), candidate('b', 1), candidate('c', 2), candidate('d', 1), candidate('e', NaN)]
  assert.equal(ids(leastLoaded.shortlist(candidates, context({ turn: 0 }), 3)), 'bdc')
  assert.equal(ids(leastLoaded.shortlist(candidates, context({ turn: 3 }), 3)), 'dbc')
  assert.equal(ids(leastLoaded.shortlist(candidates, context(), 1)), 'b')
  assert.equal(ids(leastLoaded.shortlist(candidates, context(), 9)), 'bdcae')
  assert.equal(ids(leastLoaded.shortlist([], context(), 3)), '')
  assert.equal(leastLoaded.pick([], context()), null)
})

test('least-loaded: the shortlist is what a sort by load and then by turn gives, for any candidates', () => {
  const load = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom(NaN, Infinity, -Infinity))
  fc.assert(fc.property(fc.array(fc.tuple(load, fc.integer({ min: 0, max: 2 })), { maxLength: 12 }), fc.nat(1000), fc.integer({ min: 1, max: 5 }), (loads, turn, count) => {
    const candidates = loads.map(([load, pending], at) => candidate(String.fromCharCode(97 + at), load, pending))
    const rotated = candidates.map((_, at) => candidates[(turn + at) % candidates.length] as typeof candidates[0])
    // Array.prototype.sort is stable; two infinities must compare equal.
    const sorted = rotated.toSorted((a, b) => rankedLoad(a) === rankedLoad(b) ? 0 : rankedLoad(a) - rankedLoad(b))
    assert.deepEqual(leastLoaded.shortlist(candidates, context({ turn }), count), sorted.slice(0, count))
  }))
})

test('least-loaded: changes neither the candidates nor their order', () => {
  const candidates = [candidate('b', 2), candidate('a', 1)].map(each => Object.freeze(each))
  leastLoaded.shortlist(Object.freeze(candidates), context({ turn: 1 }), 2)
  assert.equal(ids(candidates), 'ba')
})

test('rankedLoad: adds what is pending, and is Infinity where the load is unknown', () => {
  assert.equal(rankedLoad(candidate('a', 0.25, 0.5)), 0.75)
  for (const load of [NaN, Infinity, -Infinity]) assert.equal(rankedLoad(candidate('a', load, 1)), Infinity)
})

test('isLoadAware: is said of least-loaded itself, not of a strategy that looks like it', () => {
  assert.equal(isLoadAware(leastLoaded), true)
  assert.equal(isLoadAware({ ...leastLoaded }), false)
  assert.equal(isLoadAware({ pick: () => null }), false)
})
