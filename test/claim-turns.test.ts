import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ClaimTurns } from '../src/claim-turns.ts'

test('ClaimTurns: starts where chance says, so that registries do not all begin with the same pod', () => {
  assert.equal(new ClaimTurns(() => 0).take(), 0)
  assert.equal(new ClaimTurns(() => 0.5).take(), 2 ** 19)
  const start = new ClaimTurns(() => 1 - Number.EPSILON).take()
  assert.ok(Number.isInteger(start) && start > 1000)
})

test('ClaimTurns: asks for its start once', () => {
  let asked = 0
  const turns = new ClaimTurns(() => { asked++; return 0 })
  turns.take()
  turns.take()
  assert.equal(asked, 1)
})

test('ClaimTurns: claims in flight each have a turn of their own', () => {
  const turns = new ClaimTurns(() => 0)
  assert.deepEqual([turns.take(), turns.take(), turns.take()], [0, 1, 2])
})

test('ClaimTurns: a turn given back is the next to be taken, the lowest first whatever the order of return', () => {
  const turns = new ClaimTurns(() => 0)
  for (let at = 0; at < 5; at++) turns.take()
  for (const turn of [3, 0, 4, 2]) turns.giveBack(turn)
  assert.deepEqual([turns.take(), turns.take(), turns.take(), turns.take(), turns.take()], [0, 2, 3, 4, 5])
})

test('ClaimTurns: reads of bound destinations between claims leave the claims even', () => {
  const turns = new ClaimTurns(() => 0)
  const claimed: number[] = []
  for (let at = 0; at < 20; at++) {
    const [read, claim, other] = [turns.take(), turns.take(), turns.take()]
    turns.giveBack(other)
    turns.giveBack(read)
    claimed.push(claim)
  }
  // What was given back is used up before anything new, so no more than two turns are ever missing.
  assert.equal(new Set(claimed).size, 20)
  assert.ok(Math.max(...claimed) <= 21)
})

test('ClaimTurns: over any sequence no turn is out twice and none is lost', () => {
  fc.assert(fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(50))), steps => {
    const turns = new ClaimTurns(() => 0)
    const out = new Set<number>()
    const used = new Set<number>()
    for (const [isTake, at] of steps) {
      const held = [...out]
      const turn = held[at % Math.max(1, held.length)]
      if (isTake || turn === undefined) {
        const taken = turns.take()
        assert.ok(!out.has(taken) && !used.has(taken))
        out.add(taken)
      } else if (at % 2 === 0) {
        out.delete(turn)
        turns.giveBack(turn)
      } else {
        out.delete(turn)
        used.add(turn)
      }
    }
    const taken = new Set([...out, ...used])
    const next = turns.take()
    for (let turn = 0; turn < next; turn++) assert.ok(taken.has(turn), `${turn} was lost before ${next}`)
  }))
})
