import assert from 'node:assert/strict'
import test from 'node:test'
import { HeldLocks } from '../src/held-locks.ts'
import type { HeldLock } from '../src/held-locks.ts'

const lock = (lockId: string, destinationId = 'd'): HeldLock => ({ lockId, destinationId, fields: ['a', 'b'] })

function hold (...held: [string, number][]): HeldLocks {
  const locks = new HeldLocks()
  for (const [lockId, renewedAt] of held) locks.set(lock(lockId), renewedAt)
  return locks
}

test('HeldLocks: a lock is kept with all it takes to write it again, the last of an id', () => {
  const locks = hold(['l', 1])
  assert.deepEqual(locks.get('l'), lock('l'))
  locks.set(lock('l', 'other'), 2)
  assert.deepEqual(locks.get('l'), lock('l', 'other'))
  assert.deepEqual(locks.listRenewedBefore(Infinity, Infinity), ['l'])
  assert.equal(locks.get('unknown'), undefined)
})

test('HeldLocks: those due are the ones renewed before the time, the longest waiting first, no more than asked for', () => {
  const locks = hold(['a', 1], ['b', 2], ['c', 3], ['d', 4])
  assert.deepEqual(locks.listRenewedBefore(4, 100), ['a', 'b', 'c'])
  assert.deepEqual(locks.listRenewedBefore(4, 2), ['a', 'b'])
  assert.deepEqual(locks.listRenewedBefore(1, 100), [])
  assert.deepEqual(locks.listRenewedBefore(Infinity, 0), [])
  assert.deepEqual(locks.listRenewedBefore(Infinity, Infinity), ['a', 'b', 'c', 'd'])
  assert.deepEqual(new HeldLocks().listRenewedBefore(Infinity, 100), [])
})

test('HeldLocks: one that was renewed or written again goes to the end', () => {
  const locks = hold(['a', 1], ['b', 1], ['c', 1])
  locks.markRenewed('a', 5)
  locks.set(lock('b'), 6)
  assert.deepEqual(locks.listRenewedBefore(2, 100), ['c'])
  assert.deepEqual(locks.listRenewedBefore(Infinity, 100), ['c', 'a', 'b'])
  assert.deepEqual(locks.get('a'), lock('a'))
})

test('HeldLocks: one that was released while it was renewed does not come back', () => {
  const locks = hold(['a', 1], ['b', 1])
  locks.delete('a')
  locks.markRenewed('a', 5)
  locks.delete('never there')
  assert.equal(locks.get('a'), undefined)
  assert.deepEqual(locks.listRenewedBefore(Infinity, 100), ['b'])
})

test('HeldLocks: clear forgets all', () => {
  const locks = hold(['a', 1], ['b', 1])
  locks.clear()
  assert.deepEqual(locks.listRenewedBefore(Infinity, Infinity), [])
})

test('HeldLocks: ids that look alike are kept apart', () => {
  const ids = ['1', '01', '__proto__', 'a', 'a ', 'ä', 'a\u0308', '']
  const locks = hold(...ids.map((id, at): [string, number] => [id, at]))
  assert.deepEqual(locks.listRenewedBefore(Infinity, Infinity), ids)
})

test('HeldLocks: 250 locks are due in pages, each once a ttl', () => {
  const locks = hold(...Array.from({ length: 250 }, (_, at): [string, number] => [`l-${at}`, 0]))
  const renewed: string[] = []
  for (let due; (due = locks.listRenewedBefore(10, 100)).length > 0;) {
    renewed.push(...due)
    for (const lockId of due) locks.markRenewed(lockId, 10)
  }
  assert.equal(new Set(renewed).size, 250)
  assert.equal(renewed.length, 250)
})
