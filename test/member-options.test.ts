import assert from 'node:assert/strict'
import test from 'node:test'
import { Member } from '../src/index.ts'
import type { MemberOptions } from '../src/index.ts'
import { setScene } from './support/store.ts'

const valid = { redis: 'redis://127.0.0.1:1', memberId: 'pod-1', address: 'http://pod-1.test:3000' }

/** Options that are refused before anything is opened, with the message. */
const refused: [name: string, options: object | null | undefined, message: string | RegExp][] = [
  ['no options', undefined, 'Expected MemberOptions to be an object, got undefined'],
  ['null', null, 'Expected MemberOptions to be an object, got null'],
  ['no memberId (G44)', { memberId: undefined }, 'Expected memberId to be a non-empty string, got undefined'],
  ['an empty memberId (G44)', { memberId: '' }, 'Expected memberId to be a non-empty string, got "" (string)'],
  ['a memberId that is a number', { memberId: 7 }, 'Expected memberId to be a non-empty string, got 7 (number)'],
  ['an ill-formed memberId', { memberId: 'a\ud800' }, /^Expected memberId to be well-formed/],
  ['a memberId of 257 bytes', { memberId: 'x'.repeat(257) }, 'Expected memberId to have at most 256 bytes of UTF-8, got 257'],
  ['a memberId of 258 bytes in 129 characters', { memberId: 'é'.repeat(129) }, 'Expected memberId to have at most 256 bytes of UTF-8, got 258'],
  ['no address (G44)', { address: undefined }, /^Expected address to be a URL .*got undefined$/],
  ['an address that is no url (G44)', { address: 'not a url' }, /^Expected address to be a URL .*got "not a url" \(string\)$/],
  ['an address without a scheme (G44)', { address: 'pod-1:3000' }, /^Expected address to be a URL/],
  ['an address without a host (G44)', { address: 'http://' }, /^Expected address to be a URL/],
  ['an address that is a URL object', { address: new URL('http://pod-1.test') }, /^Expected address to be a URL/],
  ['ttl 0', { ttl: 0 }, /^Expected ttl to be a number of seconds > 0.*, got 0 \(number\)$/],
  ['ttl -1', { ttl: -1 }, /^Expected ttl to be a number of seconds > 0.*, got -1 \(number\)$/],
  ['ttl NaN', { ttl: NaN }, /^Expected ttl to be a number of seconds > 0.*, got NaN \(number\)$/],
  ['ttl Infinity', { ttl: Infinity }, /^Expected ttl/],
  ['ttl as text', { ttl: '30' }, /^Expected ttl to be a number of seconds > 0.*, got "30" \(string\)$/],
  ['ttl null', { ttl: null }, /^Expected ttl to be a number of seconds > 0.*, got null$/],
  ['getLoad that is a number', { getLoad: 5 }, 'Expected getLoad to be a function, got 5 (number)'],
  ['loadPerBinding -1', { loadPerBinding: -1 }, 'Expected loadPerBinding to be a number >= 0, got -1 (number)'],
  ['loadPerBinding NaN', { loadPerBinding: NaN }, /^Expected loadPerBinding/],
  ['loadPerBinding as text', { loadPerBinding: '1' }, /^Expected loadPerBinding/],
  ['an empty keyPrefix', { keyPrefix: '' }, /^Expected keyPrefix to be a non-empty string/],
  ['a keyPrefix of 257 bytes', { keyPrefix: 'x'.repeat(257) }, /^Expected keyPrefix to have at most 256 bytes/],
  ['memberIndex as text', { memberIndex: 'yes' }, 'Expected memberIndex to be a boolean, got "yes" (string)'],
  ['strictFeatures as a number', { strictFeatures: 1 }, 'Expected strictFeatures to be a boolean, got 1 (number)'],
  ['storeTimeout 0', { storeTimeout: 0 }, /^Expected storeTimeout to be a number of milliseconds > 0.*, got 0 \(number\)$/],
  ['onError that is no function', { onError: 'log' }, /^Expected onError to be a function/],
  ['no redis', { redis: undefined }, 'Expected redis to be a URL (options go into redisOptions beside it) or a client of iovalkey, got undefined'],
  ['redisOptions that are text', { redisOptions: 'x' }, /^Expected redisOptions to be an object/]
]

for (const [name, options, message] of refused) {
  test(`new Member: ${name} is refused at construction`, () => {
    const given = (options ? { ...valid, ...options } : options) as MemberOptions
    assert.throws(() => new Member(given), { name: 'CoordinatorError', code: 'PLT_COORDINATOR_INVALID_OPTION', message })
  })
}

test('new Member: addresses with port, path, IPv6 host, upper case scheme or another scheme are published as given', async t => {
  const scene = setScene(t)
  for (const address of ['http://10.0.0.7:3000', 'https://pod.test/base/', 'http://[::1]:80', 'HTTP://Pod.test', 'http://pod_1.test:443', 'h2c://pod-1:1']) {
    const member = await scene.liveMember('pod-1', { address, redis: scene.raw })
    assert.equal(member.address, address)
    assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'address'), address)
  }
})

test('new Member: a ttl of a millisecond and a loadPerBinding of 0 are taken', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1', { ttl: 0.001, redis: scene.raw })
  const member = await scene.liveMember('pod-2', { loadPerBinding: 0, redis: scene.raw })
  assert.equal(await member.addToDestination('tenant-1'), true)
  assert.deepEqual(await scene.raw.hmget(scene.key('member', 'pod-2'), 'bindingLoad', 'pending'), ['0', '0'])
})

test('Member: destination ids that are empty, missing, not a string, ill-formed or too long are coded errors and touch no key', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { memberIndex: true })
  const before = await scene.keys()
  const invalid = { code: 'PLT_COORDINATOR_INVALID_ID', statusCode: 400 }
  for (const id of ['', undefined, null, 7, {}, [], Symbol('x'), '\udc00', 'x'.repeat(16 * 1024 + 1), 'é'.repeat(8193)]) {
    await assert.rejects(member.addToDestination(id as never), invalid)
    await assert.rejects(member.removeFromDestination(id as never), invalid)
  }
  for (const flag of [undefined, null, 1, 'true']) {
    await assert.rejects(member.setDraining(flag as never), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
  }
  assert.deepEqual(await scene.keys(), before)
  const longest = 'x'.repeat(16 * 1024)
  assert.equal(await member.addToDestination(longest), true)
  assert.deepEqual(await member.listOwned(), [longest])
})
