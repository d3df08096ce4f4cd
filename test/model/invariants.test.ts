import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Redis } from 'iovalkey'
import { storeUrl } from '../support/store.ts'
import { Fleet } from './fleet.ts'
import { Rules } from './rules.ts'
import { steps } from './steps.ts'

// COORDINATOR_PROPERTY_RUNS raises the number of sequences, COORDINATOR_PROPERTY_SEED repeats a run that failed.
const numRuns = Number(process.env.COORDINATOR_PROPERTY_RUNS ?? 500)
const seed = process.env.COORDINATOR_PROPERTY_SEED

test('invariants: after each step of a random sequence I2, I3 and I4 hold, and Valkey holds what the rules say', async t => {
  const redis = new Redis(storeUrl)
  t.after(() => redis.disconnect())
  const seen = new Map<string, number>()
  let stepCount = 0

  const property = fc.asyncProperty(steps, async sequence => {
    const fleet = new Fleet(redis, seen)
    try {
      for (const step of sequence) {
        await fleet.take(step)
        await fleet.check()
        stepCount++
      }
    } finally {
      await fleet.close()
    }
  })
  await fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed: Number(seed) }) })

  // A sequence is random, but all of this comes up many times in some hundreds of them, or the test tests less than it says.
  for (const what of ['serve', 'bind', 'reassign', 'none', 'prune', 'cached', 'beat', 'superseded']) {
    assert.ok((seen.get(what) ?? 0) >= numRuns / 50, `${what} came up ${seen.get(what) ?? 0} times in ${numRuns} sequences`)
  }
  t.diagnostic(`${numRuns} sequences, ${stepCount} steps, ${[...seen].map(([what, count]) => `${what} ${count}`).join(', ')}`)
})

test('rules: the model itself says what the table of the contract says', () => {
  const flags = (claimOnMiss: boolean, reassignOrphans: boolean): { claimOnMiss: boolean, reassignOrphans: boolean } => ({ claimOnMiss, reassignOrphans })
  const rules = new Rules()
  rules.writePlainly('pod-1')
  rules.writePlainly('pod-2', true)

  assert.deepEqual(rules.judge('d', flags(false, true)), { kind: 'none' })
  assert.deepEqual(rules.judge('d', flags(true, false)), { kind: 'bind', anyOf: ['pod-1'], previous: null })
  rules.bind('d', 'pod-1')
  assert.deepEqual(rules.judge('d', flags(false, false)), { kind: 'serve', anyOf: ['pod-1'] })
  rules.expire('pod-1')
  assert.deepEqual(rules.judge('d', flags(true, false)), { kind: 'none' })
  assert.deepEqual(rules.judge('d', flags(false, true)), { kind: 'none' }, 'a draining pod takes nothing new')
  rules.writePlainly('pod-2', false)
  assert.deepEqual(rules.judge('d', flags(false, true)), { kind: 'bind', anyOf: ['pod-2'], previous: ['pod-1'] })
})
