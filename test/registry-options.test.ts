import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError, Registry } from '../src/index.ts'
import type { RegistryOptions, ResolveOptions } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'

const redis = 'redis://127.0.0.1:1'
const refused: [string, unknown[], RegExp][] = [
  ['redis', [undefined, null, '', 7, {}, [], 'valkey', 'http://127.0.0.1:6379', 'redis://h/nine', true], /^Expected redis to be /],
  ['redisOptions', [null, 7, 'tls', true], /^Expected redisOptions to be an object, got /],
  ['keyPrefix', ['', null, 7, {}, '\ud800', 'k'.repeat(257)], /^Expected keyPrefix to /],
  ['memberIndex', [null, 1, 'true'], /^Expected memberIndex to be a boolean, got /],
  ['strictFeatures', [null, 0, 'no'], /^Expected strictFeatures to be a boolean, got /],
  ['storeTimeout', [0, -1, NaN, Infinity, '2000', null, 2 ** 31], /^Expected storeTimeout to be a number of milliseconds > 0/],
  ['onError', [null, 'log', {}], /^Expected onError to be a function, got /]
]

for (const [name, values, message] of refused) {
  test(`options: a ${name} that breaks its rule is refused at construction`, () => {
    for (const value of values) {
      assert.throws(() => new Registry({ redis, [name]: value } as RegistryOptions), error =>
        isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION') && message.test(error.message), `${name}: ${String(value)}`)
    }
  })
}

test('options: none, or something that is no object, is refused at construction', () => {
  for (const options of [undefined, null, 7, redis]) {
    assert.throws(() => new Registry(options as unknown as RegistryOptions), error => isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION'))
  }
})

test('options: no message repeats the password of a URL', () => {
  for (const url of ['redis://user:s3cret@h/nine', 'http://user:s3cret@h', 'redis://user:s3cret%@h:6379', 's3cret']) {
    assert.throws(() => new Registry({ redis: url }), error => isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION') && !error.message.includes('s3cret'), url)
  }
})

test('options: flags of resolveDestination that are no booleans are refused, and no key is written', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  for (const options of [null, 7, 'claim', { claimOnMiss: 1 }, { reassignOrphans: 'yes' }, { claimOnMiss: null }]) {
    await assert.rejects(registry.resolveDestination('d', options as ResolveOptions), error => isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION'))
  }
  assert.deepEqual(await scene.keys(), [])
  assert.equal(await registry.resolveDestination('d', { claimOnMiss: undefined, reassignOrphans: undefined }), null)
})

test('options: an undefined value stands for the default', async t => {
  const scene = setScene(t)
  const absent = { redisOptions: undefined, memberIndex: undefined, strictFeatures: undefined, storeTimeout: undefined, onError: undefined, strategy: undefined, cache: undefined }
  await scene.liveMember('pod-1')
  const registry = scene.registry(absent)
  assert.equal((await registry.resolveDestination('d', { claimOnMiss: true }))?.memberId, 'pod-1')
})

test('onError: it hears of lost connections and failed background work; its own throwing costs nothing', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.rawMember('pod-1')
  await scene.raw.sadd(scene.key('destination', 'd'), 'pod-1', 'dead-1')
  const codes: string[] = []
  const registry = scene.registry({
    cache: false,
    onError (error) {
      codes.push(error.code)
      throw new Error('on purpose')
    }
  })
  await registry.hasBinding('warm')
  // The prune script alone is refused: it writes, and EVALSHA of it is not allowed to.
  await scene.raw.acl('SETUSER', 'default', '-srem')
  assert.equal((await registry.resolveDestination('d'))?.memberId, 'pod-1')
  await until(() => codes.includes('PLT_COORDINATOR_STORE_REFUSED'), 'the failed pruning is reported')
  await scene.raw.acl('SETUSER', 'default', '+srem')
  assert.deepEqual(await scene.pods('d'), ['dead-1', 'pod-1'])

  await store.kill()
  await until(() => codes.includes('PLT_COORDINATOR_UNAVAILABLE'), 'the lost connection is reported')
  await assert.rejects(registry.resolveDestination('d'), error => isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE') && error.statusCode === 503)
})

test('pickMember and resolveDestination: options that are no object are refused with a code', async t => {
  const registry = setScene(t).registry()
  for (const options of [null, 'x', 7] as never[]) {
    await assert.rejects(registry.pickMember(options), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
    await assert.rejects(registry.resolveDestination('x', options), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
  }
})
