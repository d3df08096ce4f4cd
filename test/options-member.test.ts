import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import test from 'node:test'
import { CoordinatorError } from '../src/errors.ts'
import { checkBoolean, checkMemberOptions, checkResolveOptions } from '../src/options.ts'
import type { CheckedMemberOptions } from '../src/options.ts'

const required = { redis: 'redis://127.0.0.1:6379', memberId: 'pod-1', address: 'http://10.0.0.7:3000' }

function check (options: unknown): CheckedMemberOptions {
  return checkMemberOptions(options as Parameters<typeof checkMemberOptions>[0])
}

function refusal (run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof CoordinatorError)
    assert.equal(error.code, 'PLT_COORDINATOR_INVALID_OPTION')
    return error.message
  }
  return 'accepted'
}

test('checkMemberOptions: fills in the documented defaults', () => {
  const { getLoad, onError, ...checked } = check(required)
  assert.deepEqual(checked, {
    ...required, redisOptions: {}, keyPrefix: 'coordinator', memberIndex: false, strictFeatures: false, storeTimeoutMs: 2000, ttlMs: 30_000, loadPerBinding: 1
  })
  assert.equal(getLoad(), 0)
  assert.equal(typeof onError, 'function')
  const { ttlMs, loadPerBinding } = check({ ...required, ttl: undefined, getLoad: undefined, loadPerBinding: undefined })
  assert.deepEqual([ttlMs, loadPerBinding], [30_000, 1])
})

test('checkMemberOptions: ttl is seconds, fractions rounded to a millisecond and never to none', () => {
  for (const [ttl, ttlMs] of [[1, 1000], [0.25, 250], [1.0006, 1001], [0.0001, 1], [Number.MIN_VALUE, 1], [2147483.647, 2147483647]] as const) {
    assert.equal(check({ ...required, ttl }).ttlMs, ttlMs, String(ttl))
  }
})

test('checkMemberOptions: loadPerBinding is any number from 0', () => {
  for (const loadPerBinding of [0, 0.01, 1e9]) assert.equal(check({ ...required, loadPerBinding }).loadPerBinding, loadPerBinding)
})

test('checkMemberOptions: a memberId of 1 to 256 bytes is valid, whatever it is made of', () => {
  for (const memberId of ['x', ' ', 'x'.repeat(256), 'é'.repeat(128), '😀'.repeat(64), 'a:b', '\0', '__proto__', '{}']) {
    assert.equal(check({ ...required, memberId }).memberId, memberId)
  }
})

test('checkMemberOptions: an address is any URL with a scheme and a host, kept as it was given', () => {
  for (const address of [
    'http://pod', 'https://pod:443/', 'HTTP://Pod:80', 'http://[::1]:3000', 'http://pod/base/path/', 'http://user:x@pod', 'tcp://10.0.0.1:9000', 'http://pod?x=1'
  ]) assert.equal(check({ ...required, address }).address, address)
})

test('checkMemberOptions: each refusal names the option, the rule and what came (G44)', () => {
  const noId = 'Expected memberId to be a non-empty string, got '
  const noAddress = 'Expected address to be a URL with a scheme and a host, such as http://10.0.0.7:3000, got '
  const noWeight = 'Expected loadPerBinding to be a number >= 0, got '
  const refusals: [unknown, string][] = [
    [undefined, 'Expected MemberOptions to be an object, got undefined'],
    [{ ...required, redis: undefined }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got undefined'],
    [{ ...required, memberId: undefined }, `${noId}undefined`],
    [{ ...required, memberId: '' }, `${noId}"" (string)`],
    [{ ...required, memberId: 7 }, `${noId}7 (number)`],
    [{ ...required, memberId: null }, `${noId}null`],
    [{ ...required, memberId: 'x'.repeat(257) }, 'Expected memberId to have at most 256 bytes of UTF-8, got 257'],
    [{ ...required, memberId: '😀'.repeat(64) + 'x' }, 'Expected memberId to have at most 256 bytes of UTF-8, got 257'],
    [{ ...required, memberId: '\udc00' }, 'Expected memberId to be well-formed Unicode, got a lone surrogate in "\\udc00" (string)'],
    [{ ...required, address: undefined }, `${noAddress}undefined`],
    [{ ...required, address: '' }, `${noAddress}"" (string)`],
    [{ ...required, address: 'pod-1:3000' }, `${noAddress}"pod-1:3000" (string)`],
    [{ ...required, address: 'http:pod' }, `${noAddress}"http:pod" (string)`],
    [{ ...required, address: 'http://' }, `${noAddress}"http://" (string)`],
    [{ ...required, address: 'http://pod:port' }, `${noAddress}"http://pod:port" (string)`],
    [{ ...required, address: 'file:///tmp' }, `${noAddress}"file:///tmp" (string)`],
    [{ ...required, address: '//pod' }, `${noAddress}"//pod" (string)`],
    [{ ...required, address: new URL('http://pod') }, `${noAddress}an object`],
    [{ ...required, address: 'http://pod/\ud800' }, `${noAddress}"http://pod/\\ud800" (string)`],
    [{ ...required, getLoad: 5 }, 'Expected getLoad to be a function, got 5 (number)'],
    [{ ...required, getLoad: null }, 'Expected getLoad to be a function, got null'],
    [{ ...required, loadPerBinding: -0.1 }, `${noWeight}-0.1 (number)`],
    [{ ...required, loadPerBinding: NaN }, `${noWeight}NaN (number)`],
    [{ ...required, loadPerBinding: Infinity }, `${noWeight}Infinity (number)`],
    [{ ...required, loadPerBinding: '1' }, `${noWeight}"1" (string)`]
  ]
  for (const [options, message] of refusals) assert.equal(refusal(() => check(options)), message, inspect(options))
})

test('checkMemberOptions: a ttl that is no time is refused with the bounds (G40)', () => {
  for (const [ttl, got] of [
    [0, '0 (number)'], [-1, '-1 (number)'], [NaN, 'NaN (number)'], [Infinity, 'Infinity (number)'], ['30', '"30" (string)'], [null, 'null'], [30n, '30 (bigint)'],
    [2147483.648, '2147483.648 (number)']
  ]) {
    const message = refusal(() => check({ ...required, ttl }))
    assert.ok(message.startsWith('Expected ttl to be a number of seconds > 0') && message.endsWith(`, got ${got}`), message)
  }
  assert.match(refusal(() => check({ ...required, ttl: 1e9 })), /2147483/, 'says what the upper bound is')
})

test('checkResolveOptions: both flags are off unless they are true; what is no boolean is refused', () => {
  assert.deepEqual(checkResolveOptions({}), { claimOnMiss: false, reassignOrphans: false })
  assert.deepEqual(checkResolveOptions({ claimOnMiss: undefined, reassignOrphans: undefined }), { claimOnMiss: false, reassignOrphans: false })
  assert.deepEqual(checkResolveOptions({ claimOnMiss: true, reassignOrphans: true }), { claimOnMiss: true, reassignOrphans: true })
  for (const [options, message] of [
    [null, 'Expected options to be an object, got null'], ['x', 'Expected options to be an object, got "x" (string)'],
    [{ claimOnMiss: 1 }, 'Expected claimOnMiss to be a boolean, got 1 (number)'], [{ reassignOrphans: null }, 'Expected reassignOrphans to be a boolean, got null']
  ] as const) assert.equal(refusal(() => checkResolveOptions(options as object)), message)
})

test('checkBoolean: takes true and false alone', () => {
  for (const value of [true, false]) assert.equal(refusal(() => checkBoolean('draining', value)), 'accepted')
  assert.equal(refusal(() => checkBoolean('draining', undefined)), 'Expected draining to be a boolean, got undefined')
  assert.equal(refusal(() => checkBoolean('draining', 'false')), 'Expected draining to be a boolean, got "false" (string)')
})
