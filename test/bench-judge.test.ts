import assert from 'node:assert/strict'
import test from 'node:test'
import { judge } from '../bench/judge.ts'
import { quantile, toSpread } from '../bench/statistics.ts'
import { targets } from '../bench/targets.ts'

const narrow = toSpread([0.95, 1, 1.05])
const wide = toSpread([0.7, 1, 1.3])
const cost = { id: 'x/cost', what: '', limit: '', figure: '', atMost: 1.2 }
const share = { id: 'x/share', what: '', limit: '', figure: '', atLeast: 0.8 }

test('judge: a cost beyond its target is missed only outside of the control', () => {
  assert.equal(judge(1.19, cost, narrow), 'met')
  assert.equal(judge(1.22, cost, narrow), 'noise')
  assert.equal(judge(1.3, cost, narrow), 'missed')
})

test('judge: a share below its target is missed only outside of the control', () => {
  assert.equal(judge(0.81, share, narrow), 'met')
  assert.equal(judge(0.78, share, narrow), 'noise')
  assert.equal(judge(0.7, share, narrow), 'missed')
})

test('judge: a control wider than 20 % leaves undecided what lies within it, and nothing else', () => {
  assert.equal(judge(1.25, cost, wide), 'undecided')
  assert.equal(judge(1.15, cost, wide), 'undecided')
  assert.equal(judge(2, cost, wide), 'missed')
  assert.equal(judge(0.5, cost, wide), 'met')
  assert.equal(judge(0.5, share, wide), 'missed')
  assert.equal(judge(1.6, share, wide), 'met')
})

test('judge: a count has no control', () => {
  assert.equal(judge(1.2, cost), 'met')
  assert.equal(judge(1.21, cost), 'missed')
  assert.equal(judge(5, undefined), 'printed')
})

test('quantile: interpolates between neighbours', () => {
  assert.equal(quantile([1, 2, 3, 4], 0.5), 2.5)
  assert.equal(quantile([1, 2, 3], 0.05), 1.1)
})

test('targets: each has one bound, and a name of its own', () => {
  for (const { id, atMost, atLeast } of targets) assert.equal((atMost === undefined) !== (atLeast === undefined), true, id)
  assert.equal(new Set(targets.map(({ id }) => id)).size, targets.length)
})
