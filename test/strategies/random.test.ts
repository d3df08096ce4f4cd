import assert from 'node:assert/strict'
import test from 'node:test'
import { random } from '../../src/strategies/random.ts'
import { candidate, context } from '../support/candidates.ts'

test('random: takes the candidate in whose part of [0, 1) the number falls', () => {
  const candidates = ['a', 'b', 'c', 'd'].map(memberId => candidate(memberId))
  for (const [number, memberId] of [[0, 'a'], [0.2499, 'a'], [0.25, 'b'], [0.5, 'c'], [0.75, 'd'], [1 - Number.EPSILON, 'd']] as const) {
    assert.equal(random.pick(candidates, context({ random: () => number }))?.memberId, memberId)
  }
})

test('random: asks for one number a pick, and for no other source of chance', () => {
  let asked = 0
  const candidates = [candidate('a'), candidate('b')]
  const once = context({ random: () => { asked++; return 0.9 } })
  for (let at = 0; at < 20; at++) assert.equal(random.pick(candidates, once)?.memberId, 'b')
  assert.equal(asked, 20)
})

test('random: without candidates there is none', () => {
  assert.equal(random.pick([], context()), null)
})
