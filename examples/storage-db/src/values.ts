// What tenants, keys and values may be. Everything that PostgreSQL could not store, or would not give back as it came, is refused with 400
// before a connection is taken.

import { StorageError } from './errors.ts'

export type Encoding = 'text' | 'base64'

/** A value as a client writes and reads it. */
export interface Value {
  readonly value: string
  readonly encoding: Encoding
}

/** A value as it is stored: its bytes, and how they came. */
export interface StoredValue {
  readonly bytes: Buffer
  readonly encoding: Encoding
}

/** Bytes of a value, decoded. */
export const maxValueBytes = 2 ** 20
/** Bytes of a tenant id or a key: an entry of a B-tree holds some 2,700, the head of a request 16 KiB with three bytes for one. */
export const maxNameBytes = 2048
/**
 * Bytes of a request's body: base64 takes four for three, and JSON may write each character of it in six (`\u0041`). Text takes at most
 * six for one.
 */
export const maxBodyBytes = Math.ceil(maxValueBytes / 3) * 4 * 6 + 1024
/** Characters of a path parameter: as many as the head of a request may have, so that what is too long is refused here, by its name. */
export const maxParamLength = 16 * 1024

/** @throws STORAGE_INVALID_TENANT */
export function checkTenantId (id: unknown): string {
  if (!isTenantId(id)) throw new StorageError('STORAGE_INVALID_TENANT', { message: `Expected a tenant id of ${nameRule}` })
  return id
}

export function isTenantId (id: unknown): id is string {
  return isName(id)
}

/** @throws STORAGE_INVALID_KEY */
export function checkKey (key: unknown): string {
  if (!isName(key)) throw new StorageError('STORAGE_INVALID_KEY', { message: `Expected a key of ${nameRule}` })
  return key
}

const nameRule = `1 to ${maxNameBytes} bytes of well-formed text without the character U+0000`

function isName (text: unknown): text is string {
  return typeof text === 'string' && text !== '' && text.isWellFormed() && !text.includes('\0') && Buffer.byteLength(text) <= maxNameBytes
}

/** @throws STORAGE_INVALID_VALUE, STORAGE_VALUE_TOO_LARGE */
export function decodeValue (body: unknown): StoredValue {
  if (typeof body !== 'object' || body === null) throw invalid('Expected a JSON object with a value')
  const { value, encoding = 'text' } = body as { value?: unknown, encoding?: unknown }
  if (typeof value !== 'string') throw invalid('Expected value to be a string')
  if (encoding !== 'text' && encoding !== 'base64') throw invalid("Expected encoding to be 'text' or 'base64'")
  const bytes = encoding === 'text' ? encodeText(value) : decodeBase64(value)
  if (bytes.length > maxValueBytes) throw new StorageError('STORAGE_VALUE_TOO_LARGE')
  return { bytes, encoding }
}

export function encodeValue ({ bytes, encoding }: StoredValue): Value {
  return { value: bytes.toString(encoding === 'text' ? 'utf8' : 'base64'), encoding }
}

function encodeText (text: string): Buffer {
  // Half of a surrogate pair has no form in UTF-8: it would come back as another character.
  if (!text.isWellFormed()) throw invalid('Expected value to be well-formed text: a surrogate stands alone in it; write bytes as base64')
  return Buffer.from(text, 'utf8')
}

function decodeBase64 (text: string): Buffer {
  // Buffer skips what it does not know: only text that comes out again as it went in was base64, with its padding, and nothing else.
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw invalid('Expected value to be base64 (RFC 4648, section 4) with padding and without line breaks')
  return bytes
}

function invalid (message: string): StorageError {
  return new StorageError('STORAGE_INVALID_VALUE', { message })
}
