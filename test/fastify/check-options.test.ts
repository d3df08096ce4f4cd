import assert from 'node:assert/strict'
import test from 'node:test'
import { lookupAndDeregister, lookupAndProxy, lookupLockAndProxy, pickAndRegister, proxyVia } from '../../src/index.ts'
import { checkCallback, checkProxyOptions, isExpected } from '../../src/fastify/check-options.ts'

const refused: [string, unknown[]][] = [
  ['onResult', [1, null, 'x', {}]],
  ['rewriteRequestHeaders', [{}, null]],
  ['rewriteHeaders', [{}, true]],
  ['onError', ['x', null]],
  ['onUnreachable', [1]],
  ['requestTimeout', [0, -1, Number.NaN, Infinity, '1', 2 ** 31, null]],
  ['idleTimeout', [0, -1, Number.NaN, Infinity, '1', 2 ** 31, null]],
  ['notFoundMessage', [1, null, {}]],
  ['unavailableMessage', [1, null]],
  ['refusedMessage', [1, null]],
  ['parseBody', [0, 'true', null]],
  ['claimOnMiss', [1, 'x', null]],
  ['reassignOrphans', [1, 'x', null]],
  ['websocket', [1, 'x', null]],
  ['noPodStatus', [200, 399, 600, 404.5, '404', null]],
  ['ifBound', ['remove', true, null]],
  ['replyLimit', [0, -1, 1.5, Infinity, '1', null]],
  ['expectedStatus', [199, 300, '204', [], [204, 404], [200.5], null]]
]

const accepted: [string, unknown[]][] = [
  ['requestTimeout', [1, 0.5, 2 ** 31 - 1, undefined]],
  ['noPodStatus', [400, 404, 503, 599]],
  ['expectedStatus', [200, 299, [200], [200, 204]]],
  ['ifBound', ['add', 'refuse']],
  ['replyLimit', [1, 2 ** 40]],
  ['notFoundMessage', ['', 'x']],
  ['parseBody', [true, false]]
]

test('checkProxyOptions: refuses values of other kinds, with a text that names the option and what came', () => {
  for (const [name, values] of refused) {
    for (const value of values) {
      assert.throws(() => checkProxyOptions({ [name]: value } as never), (error: Error & { code: string }) => {
        assert.equal(error.code, 'PLT_COORDINATOR_INVALID_OPTION')
        assert.match(error.message, new RegExp(`^Expected ${name} to be .+, got `))
        return true
      }, `${name} ${String(value)}`)
    }
  }
})

test('checkProxyOptions: takes the limits of each, and options left undefined', () => {
  checkProxyOptions({})
  for (const [name, values] of accepted) {
    for (const value of values) checkProxyOptions({ [name]: value } as never)
  }
})

test('checkProxyOptions: refuses options that are no object', () => {
  for (const options of [undefined, null, 'x', 1]) assert.throws(() => checkProxyOptions(options as never), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
})

test('checkCallback: takes functions alone', () => {
  checkCallback('destinationFrom', () => 'x')
  for (const value of [undefined, null, 'id', {}]) assert.throws(() => checkCallback('destinationFrom', value), { code: 'PLT_COORDINATOR_INVALID_OPTION', message: /destinationFrom/ })
})

test('isExpected: a status, a list, or the rule otherwise', () => {
  const is2xx = (status: number): boolean => status < 300
  assert.deepEqual([isExpected(204, 204, is2xx), isExpected(200, 204, is2xx)], [true, false])
  assert.deepEqual([isExpected(204, [200, 204], is2xx), isExpected(201, [200, 204], is2xx)], [true, false])
  assert.deepEqual([isExpected(201, undefined, is2xx), isExpected(404, undefined, is2xx)], [true, false])
})

test('helpers: each refuses, where its route is made, options without its callback or with a wrong one', () => {
  const registry = { resolveDestination () {} } as never
  const code = { code: 'PLT_COORDINATOR_INVALID_OPTION' }
  for (const [make, callback] of [[lookupAndProxy, 'destinationFrom'], [pickAndRegister, 'registerIdFrom'], [lookupAndDeregister, 'destinationFrom'], [lookupLockAndProxy, 'lockFrom']] as const) {
    for (const options of [undefined, null, {}, { [callback]: 'id' }, { [callback]: () => 'x', requestTimeout: 0 }, { [callback]: () => 'x', onResult: 1 }]) {
      assert.throws(() => make(registry, options as never), { ...code, message: /options|From|requestTimeout|onResult/ }, `${make.name} ${JSON.stringify(options)}`)
    }
    assert.equal(typeof make(registry, { [callback]: () => 'x' } as never), 'function')
  }
  assert.throws(() => proxyVia(() => null, { requestTimeout: 0 }), code)
  assert.throws(() => proxyVia(() => null, { onUnreachable: 1 as never }), code)
  assert.equal(typeof proxyVia(() => null), 'function')
})

test('proxyVia: refuses a resolve that is no function', () => {
  for (const resolve of [undefined, null, 'http://pod.test', {}]) assert.throws(() => proxyVia(resolve as never), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
})

test('helpers: refuse a registry that is none', () => {
  const callbacks = { destinationFrom: () => 'x', lockFrom: () => 'x', registerIdFrom: () => 'x' }
  for (const registry of [undefined, null, {}, 'redis://valkey:6379']) {
    for (const make of [lookupAndProxy, pickAndRegister, lookupAndDeregister, lookupLockAndProxy]) {
      assert.throws(() => make(registry as never, callbacks as never), { code: 'PLT_COORDINATOR_INVALID_OPTION', message: /registry/ }, make.name)
    }
  }
})
