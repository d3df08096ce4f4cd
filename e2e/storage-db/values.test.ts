import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { StorageError } from '../../examples/storage-db/src/errors.ts'
import { toSchemaName } from '../../examples/storage-db/src/schema-name.ts'
import { checkKey, decodeValue, encodeValue, maxBodyBytes, maxValueBytes } from '../../examples/storage-db/src/values.ts'

test('toSchemaName: ids that look alike, differ in case or share a long beginning have schemas of their own', () => {
  const ids = ['a-b', 'a_b', 'A-B', 'a.b', 'a b', 'a', 'A', 'ä', 'a\u0308', 'x'.repeat(2000), `${'x'.repeat(2000)}y`, '', ' ', '_t_', 'constructor']
  const names = ids.map(id => toSchemaName('storage', id))
  assert.equal(new Set(names).size, ids.length)
  for (const name of names) assert.match(name, /^storage_t_[0-9a-f]{53}$/)
})

test('toSchemaName: a name always fits into the 63 bytes of PostgreSQL, whatever the prefix', () => {
  fc.assert(fc.property(fc.stringMatching(/^[a-z][a-z0-9_]{0,23}$/), fc.string({ unit: 'binary', maxLength: 50 }), (prefix, id) => {
    const name = toSchemaName(prefix, id)
    assert.equal(Buffer.byteLength(name), 63)
    assert.match(name.slice(prefix.length), /^_t_[0-9a-f]{36,}$/)
  }))
})

test('decodeValue and encodeValue: every well-formed text and all bytes come back as they were', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), text => {
    if (text.isWellFormed()) assert.deepEqual(encodeValue(decodeValue({ value: text })), { value: text, encoding: 'text' })
    else assert.throws(() => decodeValue({ value: text }), { code: 'STORAGE_INVALID_VALUE' })
  }))
  fc.assert(fc.property(fc.uint8Array(), bytes => {
    const value = Buffer.from(bytes).toString('base64')
    const decoded = decodeValue({ value, encoding: 'base64' })
    assert.deepEqual([...decoded.bytes], [...bytes])
    assert.deepEqual(encodeValue(decoded), { value, encoding: 'base64' })
  }))
})

test('decodeValue: what is not exactly base64 is refused', () => {
  for (const value of ['YQ', 'YR==', 'YQ=', 'YQ==\n', ' YQ==', 'Y-__', 'YQ==YQ==', '=', 'a']) {
    assert.throws(() => decodeValue({ value, encoding: 'base64' }), { code: 'STORAGE_INVALID_VALUE', statusCode: 400 }, value)
  }
})

test('decodeValue: the size is that of the decoded value', () => {
  const largest = Buffer.alloc(maxValueBytes)
  const values = [{ value: 'x'.repeat(maxValueBytes) }, { value: 'é'.repeat(maxValueBytes / 2) }, { value: largest.toString('base64'), encoding: 'base64' }]
  for (const body of values) assert.equal(decodeValue(body).bytes.length, maxValueBytes)
  const beyond = [{ value: 'x'.repeat(maxValueBytes + 1) }, { value: 'é'.repeat(maxValueBytes / 2 + 1) }, { value: Buffer.alloc(maxValueBytes + 1).toString('base64'), encoding: 'base64' }]
  for (const body of beyond) assert.throws(() => decodeValue(body), { code: 'STORAGE_VALUE_TOO_LARGE', statusCode: 413 })
  const base64 = largest.toString('base64')
  assert.ok(maxBodyBytes >= '{"value":"","encoding":"base64"}'.length + base64.length * 6, 'the longest form of the largest value fits into a body')
})

test('decodeValue: a body that is no value is refused', () => {
  for (const body of [undefined, null, [], {}, 'text', 1, { value: 1 }, { value: null }, { value: 'a', encoding: 'hex' }, { value: 'a', encoding: null }]) {
    assert.throws(() => decodeValue(body), { code: 'STORAGE_INVALID_VALUE' }, JSON.stringify(body))
  }
})

test('checkKey: 1 to 2048 bytes without U+0000', () => {
  for (const key of ['a', '\u0001', ' ', '..', 'é'.repeat(1024), 'x'.repeat(2048)]) assert.equal(checkKey(key), key)
  for (const key of ['', 'a\0b', '\ud800', 'é'.repeat(1025), 'x'.repeat(2049), undefined, ['a']]) {
    assert.throws(() => checkKey(key), (error: unknown) => error instanceof StorageError && error.code === 'STORAGE_INVALID_KEY')
  }
})
