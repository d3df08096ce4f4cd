import assert from 'node:assert/strict'
import test from 'node:test'
import { Suspects } from '../src/suspects.ts'

const [a, b, c] = ['a', 'b', 'c'].map(memberId => ({ memberId })) as [{ memberId: string }, { memberId: string }, { memberId: string }]

/** Suspects of 1,000 ms, with a clock that the test sets. */
function create (): { suspects: Suspects, clock: { now: number } } {
  const clock = { now: 5000 }
  return { suspects: new Suspects(1000, () => clock.now), clock }
}

test('avoid: it leaves out the suspects, in order, and gives back the same list where there is none', () => {
  const { suspects } = create()
  const members = [a, b, c]
  assert.equal(suspects.avoid(members), members)
  suspects.add('b')
  assert.deepEqual(suspects.avoid(members), [a, c])
  assert.deepEqual(members, [a, b, c], 'the list that was given is left as it is')
  suspects.add('unknown')
  assert.deepEqual(suspects.avoid(members), [a, c])
})

test('avoid: it leaves out nobody when all are suspect, a single one included', () => {
  const { suspects } = create()
  suspects.add('a')
  assert.deepEqual(suspects.avoid([a]), [a])
  suspects.add('b')
  assert.deepEqual(suspects.avoid([a, b]), [a, b])
  assert.deepEqual(suspects.avoid([]), [])
})

test('avoid: suspicion ends after its time, for each member on its own', () => {
  const { suspects, clock } = create()
  suspects.add('a')
  clock.now += 600
  suspects.add('b')
  clock.now += 399
  assert.deepEqual(suspects.avoid([a, b, c]), [c])
  clock.now += 1
  assert.deepEqual(suspects.avoid([a, b, c]), [a, c])
  clock.now += 600
  assert.deepEqual(suspects.avoid([a, b, c]), [a, b, c])
})

test('add: a member that is suspect already stays so for the whole time from then on', () => {
  const { suspects, clock } = create()
  suspects.add('a')
  suspects.add('b')
  clock.now += 900
  suspects.add('a')
  clock.now += 500
  assert.deepEqual(suspects.avoid([a, b, c]), [b, c])
  clock.now += 500
  assert.deepEqual(suspects.avoid([a, b, c]), [a, b, c])
})

test('avoid: where all are suspect, it takes those of the second list that are not, and the first as it is when none is', () => {
  const { suspects } = create()
  suspects.add('a')
  assert.deepEqual(suspects.avoid([a], [a, b, c]), [b, c])
  assert.deepEqual(suspects.avoid([a, b], [c]), [b], 'the second list is not looked at while one of the first is trusted')
  suspects.add('b')
  suspects.add('c')
  assert.deepEqual(suspects.avoid([a], [a, b, c]), [a])
})
