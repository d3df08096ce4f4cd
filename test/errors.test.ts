import assert from 'node:assert/strict'
import test from 'node:test'
import { CoordinatorError, describe, isCoordinatorError } from '../src/errors.ts'
import type { CoordinatorErrorCode } from '../src/errors.ts'

const statusCodes: Record<CoordinatorErrorCode, number> = {
  PLT_COORDINATOR_INVALID_OPTION: 500,
  PLT_COORDINATOR_INVALID_ID: 400,
  PLT_COORDINATOR_INVALID_METADATA: 400,
  PLT_COORDINATOR_NO_HASH_TAG: 500,
  PLT_COORDINATOR_MEMBER_INDEX_OFF: 500,
  PLT_COORDINATOR_FEATURE_MISMATCH: 500,
  PLT_COORDINATOR_STRATEGY_FAILED: 500,
  PLT_COORDINATOR_NOT_A_CANDIDATE: 500,
  PLT_COORDINATOR_LOAD_UNKNOWN: 500,
  PLT_COORDINATOR_SUPERSEDED: 409,
  PLT_COORDINATOR_NOT_REGISTERED: 409,
  PLT_COORDINATOR_UNAVAILABLE: 503,
  PLT_COORDINATOR_STORE_REFUSED: 500,
  PLT_COORDINATOR_CLOSED: 503
}

test('CoordinatorError: each code has the HTTP status that fits it', () => {
  for (const [code, statusCode] of Object.entries(statusCodes) as [CoordinatorErrorCode, number][]) {
    const error = new CoordinatorError(code, 'what happened')
    assert.deepEqual([error.code, error.statusCode, error.message, error.name], [code, statusCode, 'what happened', 'CoordinatorError'])
    assert.ok(error instanceof Error)
  }
})

test('CoordinatorError: keeps its cause, and has none where none was given', () => {
  const cause = new Error('beneath')
  assert.equal(new CoordinatorError('PLT_COORDINATOR_CLOSED', '', cause).cause, cause)
  assert.ok(!('cause' in new CoordinatorError('PLT_COORDINATOR_CLOSED', '')))
  assert.equal(new CoordinatorError('PLT_COORDINATOR_CLOSED', '', null).cause, null, 'a strategy may throw null')
})

test('isCoordinatorError: knows its class and, where asked, the code', () => {
  const error = new CoordinatorError('PLT_COORDINATOR_CLOSED', '')
  assert.equal(isCoordinatorError(error), true)
  assert.equal(isCoordinatorError(error, 'PLT_COORDINATOR_CLOSED'), true)
  assert.equal(isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE'), false)
  for (const other of [undefined, null, new Error('x'), { code: 'PLT_COORDINATOR_CLOSED' }, 'PLT_COORDINATOR_CLOSED']) assert.equal(isCoordinatorError(other), false)
})

test('describe: says the value and its type', () => {
  for (const [value, text] of [
    [undefined, 'undefined'], [null, 'null'], ['', '"" (string)'], ['a"b\n', '"a\\"b\\n" (string)'], [0, '0 (number)'], [-1.5, '-1.5 (number)'], [NaN, 'NaN (number)'],
    [10n, '10 (bigint)'], [false, 'false (boolean)'], [Symbol('s'), 'Symbol(s) (symbol)'], [() => 1, 'a function'], [class {}, 'a function'], [{}, 'an object'], [new Map(), 'an object'], [Object.create(null), 'an object'],
    [[], 'an array'], [[1, 2], 'an array']
  ]) assert.equal(describe(value), text)
})

test('describe: cuts long text, leaves 64 signs whole, and keeps any value on one line', () => {
  assert.equal(describe('x'.repeat(64)), `"${'x'.repeat(64)}" (string)`)
  assert.equal(describe('x'.repeat(65)), `"${'x'.repeat(64)}…" (string)`)
  for (const value of ['a\nb'.repeat(100), `${'x'.repeat(63)}😀`, Symbol('a\nb'), 10n ** 500n, 'a\r\nb']) {
    const text = describe(value)
    assert.ok(text.length < 250, text)
    assert.ok(!/[\r\n]/.test(text), text)
    assert.ok(text.isWellFormed(), text)
  }
  // Compiled by the engine, so that no build tool takes its lines together.
  const lines = new Function('\nreturn 1\n') as () => unknown // eslint-disable-line no-new-func
  assert.ok(!/[\r\n]/.test(describe(lines)), describe(lines))
})
