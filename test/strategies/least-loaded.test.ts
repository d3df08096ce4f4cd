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

test('least-loaded: equal loads are taken in turn, each as often as the others', () => {
  const candidates = [candidate('a', 1), candidate('b', 5), candidate('c', 1), candidate('d', 1)]
  const picks = [0, 1, 2, 3, 2 ** 20].map(turn => leastLoaded.pick(candidates, context({ turn }))?.memberId)
  assert.deepEqual(picks, ['a', 'c', 'd', 'a', 'acd'[2 ** 20 % 3]])
  const allNaN = [candidate('a', NaN), candidate('b', Infinity)]
  assert.deepEqual([0, 1, 2].map(turn => leastLoaded.pick(allNaN, context({ turn }))?.memberId), ['a', 'b', 'a'])
})

test('least-loaded: the shortlist has the pick first and then alternates drawn by chance', () => {
  const candidates = ['a', 'b', 'c', 'd', 'e'].map((memberId, at) => candidate(memberId, 5 - at))
  const drawn = (...numbers: number[]): string => ids(leastLoaded.shortlist(candidates, context({ random: () => numbers.shift() ?? 0 }), 3))
  assert.equal(drawn(0, 0.2), 'eab')
  assert.equal(drawn(0.6, 0.4), 'edc')
  assert.equal(drawn(0.99, 0.99), 'eab', 'a candidate that is listed already gives way to the next ones')
  assert.equal(drawn(0.4, 0.4), 'ecd')
})

test('least-loaded: with no more candidates than asked for all are listed, without a draw', () => {
  const never = context({ random: () => { throw new Error('drawn') } })
  assert.equal(ids(leastLoaded.shortlist([candidate('a', 3), candidate('b', 1), candidate('c', 2)], never, 3)), 'bac')
  assert.equal(ids(leastLoaded.shortlist([candidate('a', 3)], never, 3)), 'a')
  assert.equal(ids(leastLoaded.shortlist([], never, 3)), '')
  assert.equal(leastLoaded.pick([], never), null)
})

test('least-loaded: every candidate is drawn as an alternate about as often as any other', () => {
  const candidates = Array.from({ length: 10 }, (_, at) => candidate(String(at), at))
  const counts = new Map<string, number>()
  let number = 0
  // Chance that is spread evenly, so that the test needs none.
  const random = (): number => (number += 0.618033988749895) % 1
  for (let at = 0; at < 900; at++) {
    for (const { memberId } of leastLoaded.shortlist(candidates, context({ random }), 3).slice(1)) counts.set(memberId, (counts.get(memberId) ?? 0) + 1)
  }
  assert.equal(counts.size, 9)
  for (const count of counts.values()) assert.ok(count > 100 && count < 400, String(count))
})

test('least-loaded: for any candidates the pick is one of least load, and the shortlist starts with it and names nobody twice', () => {
  const load = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom(NaN, Infinity, -Infinity))
  const members = fc.array(fc.tuple(load, fc.integer({ min: 0, max: 2 })), { maxLength: 12 })
  const chance = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 1, maxLength: 3 })
  fc.assert(fc.property(members, fc.nat(1000), fc.integer({ min: 1, max: 5 }), chance, (loads, turn, count, numbers) => {
    const candidates = loads.map(([load, pending], at) => candidate(String.fromCharCode(97 + at), load, pending))
    let draw = 0
    const ctx = context({ turn, random: () => numbers[draw++ % numbers.length] as number })
    const least = Math.min(...candidates.map(rankedLoad))
    const equals = candidates.filter(each => rankedLoad(each) === least)

    const list = leastLoaded.shortlist(candidates, ctx, count)

    assert.equal(leastLoaded.pick(candidates, ctx), equals[turn % equals.length] ?? null)
    assert.equal(list[0] ?? null, leastLoaded.pick(candidates, ctx))
    assert.equal(new Set(list).size, Math.min(count, candidates.length))
    assert.equal(list.length, Math.min(count, candidates.length))
    assert.ok(list.every(each => candidates.includes(each)))
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
