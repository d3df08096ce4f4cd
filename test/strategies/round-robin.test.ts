import assert from 'node:assert/strict'
import test from 'node:test'
import { roundRobin } from '../../src/strategies/round-robin.ts'
import { candidate, context } from '../support/candidates.ts'

test('round-robin: takes the candidates in turn, in their order, from any turn on', () => {
  const candidates = ['a', 'b', 'c'].map(memberId => candidate(memberId))
  const picks = [0, 1, 2, 3, 2 ** 20, 2 ** 20 + 1].map(turn => roundRobin.pick(candidates, context({ turn }))?.memberId)
  assert.deepEqual(picks, ['a', 'b', 'c', 'a', 'b', 'c'])
})

test('round-robin: of 3,000 successive turns each of three candidates has 1,000', () => {
  const candidates = ['a', 'b', 'c'].map(memberId => candidate(memberId))
  const counts: Record<string, number> = {}
  for (let turn = 12_345; turn < 15_345; turn++) {
    const memberId = roundRobin.pick(candidates, context({ turn }))?.memberId ?? ''
    counts[memberId] = (counts[memberId] ?? 0) + 1
  }
  assert.deepEqual(counts, { a: 1000, b: 1000, c: 1000 })
})

test('round-robin: without candidates there is none, and loads play no part', () => {
  assert.equal(roundRobin.pick([], context()), null)
  assert.equal(roundRobin.pick([candidate('a', 9), candidate('b', 0)], context({ turn: 0 }))?.memberId, 'a')
})
