import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { CoordinatorError } from '../src/errors.ts'
import { checkRegistryOptions } from '../src/options.ts'
import type { CheckedRegistryOptions } from '../src/options.ts'

const redis = 'redis://127.0.0.1:6379'

/** As plain JavaScript would call it. */
function check (options: unknown): CheckedRegistryOptions {
  return checkRegistryOptions(options as Parameters<typeof checkRegistryOptions>[0])
}

function refusal (options: unknown): string {
  try {
    check(options)
  } catch (error) {
    assert.ok(error instanceof CoordinatorError)
    assert.equal(error.code, 'PLT_COORDINATOR_INVALID_OPTION')
    assert.equal(error.statusCode, 500)
    return error.message
  }
  return 'accepted'
}

const withoutListener = (): void => {}

test('checkRegistryOptions: fills in the documented defaults', () => {
  const { onError, ...checked } = check({ redis })

  assert.deepEqual(checked, {
    redis,
    redisOptions: {},
    keyPrefix: 'coordinator',
    memberIndex: false,
    strictFeatures: false,
    storeTimeoutMs: 2000,
    strategy: 'round-robin',
    fanOutStrategy: 'round-robin',
    cache: { ttlMs: 5000, max: 10_000 },
    suspectTimeMs: 1000
  })
  assert.equal(onError(new CoordinatorError('PLT_COORDINATOR_CLOSED', '')), undefined)
})

test('checkRegistryOptions: an option that is undefined is one that was not given', () => {
  const given = { keyPrefix: undefined, memberIndex: undefined, strictFeatures: undefined, storeTimeout: undefined, onError: undefined, redisOptions: undefined }
  const { onError, ...checked } = check({ redis, ...given, strategy: undefined, cache: undefined })
  const { onError: other, ...defaults } = check({ redis, cache: { ttl: undefined, max: undefined } })
  assert.deepEqual(checked, defaults)
  assert.equal(typeof onError, typeof other)
})

test('checkRegistryOptions: passes on what was given', () => {
  const strategy = { pick: () => null }
  const redisOptions = { db: 3 }
  const checked = check({
    redis,
    redisOptions,
    keyPrefix: '{my}',
    memberIndex: true,
    strictFeatures: true,
    storeTimeout: 0.5,
    onError: withoutListener,
    strategy,
    fanOutStrategy: 'random',
    cache: { ttl: 1, max: 1 },
    suspectTime: 0
  })
  assert.deepEqual(checked, {
    redis,
    redisOptions,
    keyPrefix: '{my}',
    memberIndex: true,
    strictFeatures: true,
    storeTimeoutMs: 0.5,
    onError: withoutListener,
    strategy,
    fanOutStrategy: 'random',
    cache: { ttlMs: 1, max: 1 },
    suspectTimeMs: 0
  })
  assert.equal(checked.strategy, strategy)
})

test('checkRegistryOptions: a client of iovalkey is taken as it is', () => {
  const client = new Redis({ lazyConnect: true })
  assert.equal(check({ redis: client }).redis, client)
  client.disconnect()
})

test('checkRegistryOptions: values at the edge of each rule are valid', () => {
  assert.equal(check({ redis, storeTimeout: 2 ** 31 - 1 }).storeTimeoutMs, 2 ** 31 - 1)
  assert.equal(check({ redis, storeTimeout: Number.MIN_VALUE }).storeTimeoutMs, Number.MIN_VALUE)
  assert.equal(check({ redis, keyPrefix: 'x'.repeat(256) }).keyPrefix.length, 256)
  assert.equal(check({ redis, keyPrefix: 'é'.repeat(128) }).keyPrefix.length, 128)
  assert.equal(check({ redis, keyPrefix: ':' }).keyPrefix, ':')
  assert.deepEqual(check({ redis, cache: { ttl: 2 ** 31 - 1 } }).cache, { ttlMs: 2 ** 31 - 1, max: 10_000 })
  assert.deepEqual(check({ redis, cache: { ttl: 0.5, max: 1 } }).cache, { ttlMs: 0.5, max: 1 })
})

test('checkRegistryOptions: false, ttl 0 and max 0 turn the cache off (G40)', () => {
  for (const cache of [false, { ttl: 0 }, { max: 0 }, { ttl: 0, max: 0 }, { ttl: -0 }]) assert.equal(check({ redis, cache }).cache, null)
})

test('checkRegistryOptions: URLs that iovalkey understands are valid (G07)', () => {
  for (const url of [
    'redis://127.0.0.1', 'redis://127.0.0.1/', 'redis://127.0.0.1:6390/15', 'rediss://h', 'valkey://h/2', 'valkeys://h', 'redis://[::1]:6379',
    'redis://user:p%40ss%2Fw%3Fo%23r%25d@h:1/0', 'redis://:secret@h', 'redis://user@h', 'REDIS://h', 'redis://h?family=6', '/run/valkey.sock',
    'unix:///run/valkey.sock', 'unix:///run/valkey.sock?db=2', 'unix:///run/with%20space.sock'
  ]) assert.equal(refusal({ redis: url }), 'accepted', url)
})

test('checkRegistryOptions: each refusal of a store option names the option, the rule and what came (G40, G44)', () => {
  const notText = 'Expected keyPrefix to be a non-empty string, got '
  const refusals: [unknown, string][] = [
    [undefined, 'Expected RegistryOptions to be an object, got undefined'],
    [null, 'Expected RegistryOptions to be an object, got null'],
    ['redis://h', 'Expected RegistryOptions to be an object, got "redis://h" (string)'],
    [{}, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got undefined'],
    [{ redis: null }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got null'],
    [{ redis: 6379 }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got 6379 (number)'],
    [{ redis: {} }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got an object'],
    [{ redis: [redis] }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got an array'],
    [{ redis, redisOptions: null }, 'Expected redisOptions to be an object, got null'],
    [{ redis, redisOptions: 'x' }, 'Expected redisOptions to be an object, got "x" (string)'],
    [{ redis, keyPrefix: '' }, `${notText}"" (string)`],
    [{ redis, keyPrefix: null }, `${notText}null`],
    [{ redis, keyPrefix: 7 }, `${notText}7 (number)`],
    [{ redis, keyPrefix: 'x'.repeat(257) }, 'Expected keyPrefix to have at most 256 bytes of UTF-8, got 257'],
    [{ redis, keyPrefix: 'é'.repeat(129) }, 'Expected keyPrefix to have at most 256 bytes of UTF-8, got 258'],
    [{ redis, keyPrefix: 'a\ud800' }, 'Expected keyPrefix to be well-formed Unicode, got a lone surrogate in "a\\ud800" (string)'],
    [{ redis, memberIndex: 1 }, 'Expected memberIndex to be a boolean, got 1 (number)'],
    [{ redis, memberIndex: null }, 'Expected memberIndex to be a boolean, got null'],
    [{ redis, strictFeatures: 'true' }, 'Expected strictFeatures to be a boolean, got "true" (string)'],
    [{ redis, onError: 'log' }, 'Expected onError to be a function, got "log" (string)'],
    [{ redis, onError: null }, 'Expected onError to be a function, got null']
  ]
  for (const [options, message] of refusals) assert.equal(refusal(options), message, inspect(options))
})

test('checkRegistryOptions: times and sizes that are none are refused, never taken as unbounded (G40)', () => {
  const timeout = 'Expected storeTimeout to be a number of milliseconds > 0 and at most 2147483647, got '
  const ttl = 'Expected cache.ttl to be a number of milliseconds from 0 to 2147483647, got '
  const texts: [unknown, string][] = [
    [-1, '-1 (number)'], [NaN, 'NaN (number)'], [Infinity, 'Infinity (number)'], [-Infinity, '-Infinity (number)'], [2 ** 31, '2147483648 (number)'],
    ['5', '"5" (string)'], [null, 'null'], [5n, '5 (bigint)'], [true, 'true (boolean)'], [[5], 'an array']
  ]
  for (const [value, got] of texts) {
    assert.equal(refusal({ redis, storeTimeout: value }), timeout + got)
    assert.equal(refusal({ redis, cache: { ttl: value } }), ttl + got)
    assert.match(refusal({ redis, cache: { max: value } }), /^Expected cache\.max to be an integer from 0 to \d+, got /)
  }
  assert.equal(refusal({ redis, storeTimeout: 0 }), `${timeout}0 (number)`)
  assert.match(refusal({ redis, cache: { max: 1.5 } }), /^Expected cache\.max to be an integer from 0 to \d+, got 1\.5 \(number\)$/)
  for (const [cache, got] of [[true, 'true (boolean)'], [null, 'null'], [5000, '5000 (number)'], ['off', '"off" (string)']]) {
    assert.equal(refusal({ redis, cache }), `Expected cache to be an object or false, got ${got}`)
  }
})

test('checkRegistryOptions: the largest cache.max that its message allows is valid', () => {
  const [, limit] = /from 0 to (\d+),/.exec(refusal({ redis, cache: { max: -1 } })) ?? []
  assert.equal(check({ redis, cache: { max: Number(limit) } }).cache?.max, Number(limit))
  assert.notEqual(refusal({ redis, cache: { max: Number(limit) + 1 } }), 'accepted')
})

const secrets = ['s3cret', '123/s3cret', '123?s3cret', '123#s3cret', 's3cret%', '%zz-s3cret', 's3cret@', '[s3cret', 's3 cret', 's3cret\\', '9/9s3cret', '']
const shapes = [
  (secret: string) => `redis://user:${secret}@h:6379`, (secret: string) => `redis://:${secret}@h`, (secret: string) => `redis://user:${secret}@h:99999`,
  (secret: string) => `redis://user:${secret}@h/db`, (secret: string) => `redis://user:${secret}@h/-1`, (secret: string) => `http://user:${secret}@h`,
  (secret: string) => `user:${secret}@h`, (secret: string) => `:${secret}@h`, (secret: string) => `${secret}@h`, (secret: string) => `redis:${secret}@h`,
  (secret: string) => `unix://user:${secret}@/`, (secret: string) => `redis://user:${secret}`, (secret: string) => `rediss//user:${secret}@h`
]

test('checkRegistryOptions: no message repeats a password', () => {
  let refused = 0
  for (const secret of secrets) {
    for (const shape of shapes) {
      const message = refusal({ redis: shape(secret) })
      if (message !== 'accepted') refused++
      assert.ok(!message.includes('s3') && !message.includes('cret'), `${shape(secret)}: ${message}`)
    }
  }
  assert.ok(refused > 100)
})

test('checkRegistryOptions: a password whose signs are not encoded is refused with a hint, not read as another host', () => {
  for (const url of ['redis://user:12/34@h', 'redis://user:12?34@h', 'redis://user:12#34@h', 'redis://h/0#x']) assert.match(refusal({ redis: url }), /percent-encoded/, url)
  assert.match(refusal({ redis: 'redis://user:p%@h' }), /percent-encoded/)
  assert.match(refusal({ redis: 'redis://user:p#w@h' }), /percent-encoded/)
})

test('checkRegistryOptions: a URL that is no store’s is refused with the rule it breaks', () => {
  assert.equal(refusal({ redis: 'http://h' }), 'Expected redis to be a URL of scheme redis, rediss, valkey, valkeys or unix, such as redis://127.0.0.1:6379, got one of scheme http:')
  assert.equal(refusal({ redis: 'localhost:6379' }), 'Expected redis to be a URL of scheme redis, rediss, valkey, valkeys or unix, such as redis://127.0.0.1:6379, got one of scheme localhost:')
  for (const url of ['', 'h', '127.0.0.1:6379', 'redis://h:port']) assert.match(refusal({ redis: url }), /^Expected redis to be a URL such as redis:\/\/127\.0\.0\.1:6379/, url)
  assert.equal(refusal({ redis: 'redis:///0' }), 'Expected redis to be a URL with a host')
  assert.equal(refusal({ redis: 'redis:h' }), 'Expected redis to be a URL with a host')
  for (const url of ['redis://h/x', 'redis://h/1/2', 'redis://h/1.5', 'redis://h/-1']) assert.equal(refusal({ redis: url }), 'Expected redis to be a URL whose path is a database number', url)
  for (const url of ['unix:', 'unix://', 'unix:///', 'unix://h/s', 'unix:///s?db=x', 'unix:///s?db=1&x=1', 'unix:///%']) assert.match(refusal({ redis: url }), /when its scheme is unix$/, url)
})

test('checkRegistryOptions: suspectTime is a number of milliseconds, 0 for none', () => {
  for (const value of [-1, NaN, Infinity, '1', null]) assert.match(refusal({ redis, suspectTime: value }), /^Expected suspectTime to be a number of milliseconds >= 0, got /)
})
