import assert from 'node:assert/strict'
import test from 'node:test'
import { CoordinatorError } from '../src/errors.ts'
import { checkId, encodeMetadata } from '../src/options.ts'
import type { LockMetadata } from '../src/types.ts'

const kinds = ['destinationId', 'lockId', 'memberId'] as const

function refusal (run: () => unknown, code: string): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof CoordinatorError)
    assert.deepEqual([error.code, error.statusCode], [code, 400])
    return error.message
  }
  return 'accepted'
}

const idRefusal = (kind: typeof kinds[number], id: unknown): string => refusal(() => checkId(kind, id), 'PLT_COORDINATOR_INVALID_ID')
const metadataRefusal = (metadata: unknown): string => refusal(() => encodeMetadata(metadata as LockMetadata), 'PLT_COORDINATOR_INVALID_METADATA')

test('checkId: any well-formed text up to the limit of its kind is an id', () => {
  for (const kind of kinds) {
    for (const id of ['x', ' ', '\0', '\n', 'a:b', '{}', '__proto__', 'é', '😀', '%', '\ufffd', '\uffff', 'x'.repeat(256)]) assert.equal(idRefusal(kind, id), 'accepted')
  }
})

test('checkId: a destination or lock has 16 KiB of UTF-8 at most, to the byte', () => {
  for (const kind of ['destinationId', 'lockId'] as const) {
    for (const id of ['x'.repeat(16_384), 'é'.repeat(8192), '😀'.repeat(4096), '日'.repeat(5461) + 'x']) {
      assert.equal(Buffer.byteLength(id), 16_384)
      assert.equal(idRefusal(kind, id), 'accepted')
      assert.equal(idRefusal(kind, `${id}x`), `Expected ${kind} to have at most 16384 bytes of UTF-8, got 16385`)
    }
  }
})

test('checkId: a memberId has 256 bytes of UTF-8 at most, to the byte', () => {
  for (const id of ['x'.repeat(256), 'é'.repeat(128), '日'.repeat(85) + 'x', '😀'.repeat(64)]) {
    assert.equal(Buffer.byteLength(id), 256)
    assert.equal(idRefusal('memberId', id), 'accepted')
    assert.equal(idRefusal('memberId', `${id}x`), 'Expected memberId to have at most 256 bytes of UTF-8, got 257')
  }
})

test('checkId: an empty, missing or non-string id is refused with the kind and what came', () => {
  for (const kind of kinds) {
    const rule = `Expected ${kind} to be a non-empty string, got `
    for (const [id, got] of [
      ['', '"" (string)'], [undefined, 'undefined'], [null, 'null'], [0, '0 (number)'], [NaN, 'NaN (number)'], [1n, '1 (bigint)'], [true, 'true (boolean)'],
      [{}, 'an object'], [['a'], 'an array'], [Symbol('a'), 'Symbol(a) (symbol)'], [Buffer.from('a'), 'an object'], [new String('a'), 'an object'] // eslint-disable-line no-new-wrappers
    ]) assert.equal(idRefusal(kind, id), rule + String(got))
  }
})

test('checkId: a lone surrogate is refused, at any place and in a long id too, a pair is not', () => {
  for (const kind of kinds) {
    for (const id of ['\ud800', '\udfff', 'a\ud800', '\udc00a', '\ud800\ud800', '\udc00\ud800', `${'x'.repeat(200)}\ud800`]) {
      assert.match(idRefusal(kind, id), new RegExp(`^Expected ${kind} to be well-formed Unicode, got a lone surrogate in "`))
    }
    assert.equal(idRefusal(kind, '\ud83d\ude00'), 'accepted')
  }
})

test('checkId: a message about a long id stays short and on one line', () => {
  const message = idRefusal('destinationId', `a\nb${'x'.repeat(10_000)}\ud800`)
  assert.ok(message.length < 250)
  assert.ok(!message.includes('\n'))
})

test('encodeMetadata: strings go as they are, other values as JSON, what has none is left out', () => {
  const fields = encodeMetadata({
    text: 'a "b"',
    empty: '',
    '': 'no name',
    number: 1.5,
    yes: true,
    nothing: null,
    list: [1, 'a'],
    object: { a: { b: 1 } },
    date: new Date(0),
    not: undefined,
    nan: NaN
  })
  assert.deepEqual(fields, [
    'text', 'a "b"', 'empty', '', '', 'no name', 'number', '1.5', 'yes', 'true', 'nothing', 'null', 'list', '[1,"a"]', 'object', '{"a":{"b":1}}',
    'date', '"1970-01-01T00:00:00.000Z"', 'nan', 'null'
  ])
  assert.deepEqual(encodeMetadata({}), [])
})

test('encodeMetadata: only own fields are written, and odd names are names like others', () => {
  const metadata = Object.create({ inherited: 'x' }) as Record<string, unknown>
  Object.defineProperty(metadata, '__proto__', { value: 'own', enumerable: true })
  metadata['constructor'] = 'c'
  assert.deepEqual(encodeMetadata(metadata), ['__proto__', 'own', 'constructor', 'c'])
  assert.deepEqual(encodeMetadata(Object.assign(Object.create(null), { a: '1' })), ['a', '1'])
})

test('encodeMetadata: a reserved field is refused by name, even without a value', () => {
  for (const name of ['podId', 'destinationId', 'incarnation', 'epoch']) {
    assert.equal(metadataRefusal({ ok: 1, [name]: 'x' }), `Expected metadata without the reserved field ${name}`)
    assert.equal(metadataRefusal({ [name]: undefined }), `Expected metadata without the reserved field ${name}`)
  }
  assert.equal(metadataRefusal({ PodId: 'x', podid: 'y', 'podId ': 'z' }), 'accepted')
})

test('encodeMetadata: what is no object is refused', () => {
  for (const [metadata, got] of [[null, 'null'], ['x', '"x" (string)'], [5, '5 (number)'], [[], 'an array'], [['a', 'b'], 'an array'], [true, 'true (boolean)'],
    [new Map([['a', 'b']]), 'an object'], [new Set(['a']), 'an object'], [new Date(0), 'an object'], [Promise.resolve({}), 'a promise'], [Buffer.from('a'), 'an object'], [() => 1, 'a function']]) {
    assert.equal(metadataRefusal(metadata), `Expected metadata to be a plain object, got ${got}`)
  }
})

test('encodeMetadata: a value that cannot be written as JSON is refused with its name, and the reason is kept', () => {
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  assert.equal(metadataRefusal({ circle }), 'Expected metadata.circle to be writable as JSON, got an object')
  assert.equal(metadataRefusal({ big: 5n }), 'Expected metadata.big to be writable as JSON, got 5 (bigint)')
  for (const [value, got] of [[() => 1, 'a function'], [Symbol('a'), 'Symbol(a) (symbol)'], [{ toJSON: () => undefined }, 'an object']]) {
    assert.equal(metadataRefusal({ value }), `Expected metadata.value to be writable as JSON, got ${String(got)}`)
  }
  const reason = new Error('no')
  const thrower = { toJSON () { throw reason } }
  assert.throws(() => encodeMetadata({ thrower }), { code: 'PLT_COORDINATOR_INVALID_METADATA', cause: reason })
})
