import type { RedisOptions } from 'iovalkey'
import { CoordinatorError, describe } from './errors.ts'
import type { LockMetadata, MemberOptions, PickMemberOptions, RegistryOptions, ResolveOptions, StoreClient, StoreOptions } from './types.ts'

const maxIdBytes = 16 * 1024
const maxNameBytes = 256
/** The longest time a timer of Node.js can wait, in milliseconds. */
export const maxTimerMs = 2 ** 31 - 1
// lru-cache takes its memory at once, some 50 bytes an entry.
const maxCacheEntries = 2 ** 20
const storeSchemes = new Set(['redis:', 'rediss:', 'valkey:', 'valkeys:', 'unix:'])
const reservedLockFields = new Set(['podId', 'destinationId', 'incarnation', 'epoch'])

export interface CheckedStoreOptions {
  readonly redis: string | StoreClient
  readonly redisOptions: RedisOptions
  readonly keyPrefix: string
  readonly memberIndex: boolean
  readonly strictFeatures: boolean
  readonly storeTimeoutMs: number
  readonly onError: NonNullable<StoreOptions['onError']>
}

export interface CheckedRegistryOptions extends CheckedStoreOptions {
  readonly suspectTimeMs: number
  /** Checked, as the next, by what turns a name into a strategy. */
  readonly strategy: NonNullable<RegistryOptions['strategy']>
  readonly fanOutStrategy: NonNullable<RegistryOptions['strategy']>
  /** Null when the cache is off. */
  readonly cache: { readonly ttlMs: number, readonly max: number } | null
}

export interface CheckedMemberOptions extends CheckedStoreOptions {
  readonly memberId: string
  readonly address: string
  readonly ttlMs: number
  readonly getLoad: () => unknown
  readonly loadPerBinding: number
}

/** Checks what a Registry was given and fills in the defaults. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkRegistryOptions (options: RegistryOptions): CheckedRegistryOptions {
  const store = checkStoreOptions(options, 'RegistryOptions')
  const { strategy = 'round-robin', fanOutStrategy = strategy, cache, suspectTime = 1000 } = options
  if (!isNumber(suspectTime) || suspectTime < 0) throw expected('suspectTime', 'a number of milliseconds >= 0', suspectTime)
  return { ...store, strategy, fanOutStrategy, cache: checkCache(cache), suspectTimeMs: suspectTime }
}

/** Checks what a Member was given and fills in the defaults. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkMemberOptions (options: MemberOptions): CheckedMemberOptions {
  const store = checkStoreOptions(options, 'MemberOptions')
  const { memberId, address, ttl = 30, getLoad = () => 0, loadPerBinding = 1 } = options
  checkText('memberId', memberId, maxNameBytes)
  if (typeof address !== 'string' || !isAddress(address)) throw expected('address', 'a URL with a scheme and a host, such as http://10.0.0.7:3000', address)
  if (!isNumber(ttl) || ttl <= 0 || ttl * 1000 > maxTimerMs) throw expected('ttl', `a number of seconds > 0 and at most ${maxTimerMs / 1000}`, ttl)
  if (typeof getLoad !== 'function') throw expected('getLoad', 'a function', getLoad)
  if (!isNumber(loadPerBinding) || loadPerBinding < 0) throw expected('loadPerBinding', 'a number >= 0', loadPerBinding)
  return { ...store, memberId, address, ttlMs: Math.max(1, Math.round(ttl * 1000)), getLoad, loadPerBinding }
}

/** What resolveDestination may change, checked. */
interface ResolveFlags {
  readonly claimOnMiss: boolean
  readonly reassignOrphans: boolean
}

const noFlags: ResolveFlags = { claimOnMiss: false, reassignOrphans: false }

/** Whether the flags of resolveDestination are what they may be, without making anything: for the path of every request. */
export function areResolveOptions (options: ResolveOptions | undefined): boolean {
  if (options === undefined) return true
  if (typeof options !== 'object' || options === null) return false
  const { claimOnMiss, reassignOrphans } = options
  return (claimOnMiss === undefined || typeof claimOnMiss === 'boolean') && (reassignOrphans === undefined || typeof reassignOrphans === 'boolean')
}

/** Checks the flags of resolveDestination. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkResolveOptions (options: ResolveOptions | undefined): ResolveFlags {
  if (options === undefined) return noFlags
  checkObject(options)
  const { claimOnMiss = false, reassignOrphans = false } = options
  checkBoolean('claimOnMiss', claimOnMiss)
  checkBoolean('reassignOrphans', reassignOrphans)
  return { claimOnMiss, reassignOrphans }
}

/** Checks the options of pickMember. @throws PLT_COORDINATOR_INVALID_OPTION, PLT_COORDINATOR_INVALID_ID */
export function checkPickMemberOptions (options: PickMemberOptions): PickMemberOptions {
  checkObject(options)
  const { destinationId } = options
  if (destinationId === undefined) return {}
  checkId('destinationId', destinationId)
  return { destinationId }
}

/** Checks an id before any key is built from it. @throws PLT_COORDINATOR_INVALID_ID */
export function checkId (kind: 'destinationId' | 'lockId' | 'memberId', id: unknown): asserts id is string {
  checkText(kind, id, kind === 'memberId' ? maxNameBytes : maxIdBytes, 'PLT_COORDINATOR_INVALID_ID')
}

/** Turns metadata into the flat fields of a lock's hash. @throws PLT_COORDINATOR_INVALID_METADATA */
export function encodeMetadata (metadata: LockMetadata): string[] {
  if (!isPlainObject(metadata)) throw new CoordinatorError('PLT_COORDINATOR_INVALID_METADATA', `Expected metadata to be a plain object, got ${describe(metadata)}`)
  const fields: string[] = []
  for (const [name, value] of Object.entries(metadata)) {
    if (reservedLockFields.has(name)) {
      throw new CoordinatorError('PLT_COORDINATOR_INVALID_METADATA', `Expected metadata without the reserved field ${name}`)
    }
    const text = typeof value === 'string' ? value : encodeJson(name, value)
    if (text !== undefined) fields.push(name, text)
  }
  return fields
}

function checkStoreOptions (options: StoreOptions, name: string): CheckedStoreOptions {
  if (typeof options !== 'object' || options === null) throw expected(name, 'an object', options)
  const { redis, redisOptions = {}, keyPrefix = 'coordinator', memberIndex = false, strictFeatures = false } = options
  const { storeTimeout = 2000, onError = () => {} } = options
  checkRedis(redis)
  if (typeof redisOptions !== 'object' || redisOptions === null) throw expected('redisOptions', 'an object', redisOptions)
  checkText('keyPrefix', keyPrefix, maxNameBytes)
  checkBoolean('memberIndex', memberIndex)
  checkBoolean('strictFeatures', strictFeatures)
  if (!isNumber(storeTimeout) || storeTimeout <= 0 || storeTimeout > maxTimerMs) throw expected('storeTimeout', `a number of milliseconds > 0 and at most ${maxTimerMs}`, storeTimeout)
  if (typeof onError !== 'function') throw expected('onError', 'a function', onError)
  return { redis, redisOptions, keyPrefix, memberIndex, strictFeatures, storeTimeoutMs: storeTimeout, onError }
}

function checkRedis (redis: unknown): asserts redis is string | StoreClient {
  if (typeof redis === 'string') return checkUrl(redis)
  const client = redis as StoreClient | null | undefined
  if (typeof client !== 'object' || client === null || typeof client.evalsha !== 'function' || typeof client.options !== 'object') {
    throw expected('redis', 'a URL (options go into redisOptions beside it) or a client of iovalkey', redis)
  }
}

function checkUrl (url: string): void {
  if (url.startsWith('/')) return // path of a unix socket
  // The text may hold a password, so no message repeats it.
  const refusal = (rule: string): CoordinatorError => new CoordinatorError('PLT_COORDINATOR_INVALID_OPTION', `Expected redis to be ${rule}`)
  if (!URL.canParse(url)) throw refusal('a URL such as redis://127.0.0.1:6379 (signs in a password percent-encoded), got text that is none')
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(url)
  if (!storeSchemes.has(protocol)) throw refusal(`a URL of scheme redis, rediss, valkey, valkeys or unix, such as redis://127.0.0.1:6379, got one of scheme ${protocol.slice(0, 32)}`)
  // A / ? or # in a password that was not encoded ends the host part early, and leaves the @ behind.
  if (hash !== '' || `${pathname}${search}`.includes('@')) throw refusal('a URL whose user and password are percent-encoded (/ is %2F, ? is %3F, # is %23, @ is %40)')
  if (protocol === 'unix:') {
    if (hostname !== '' || pathname.length < 2 || !isPercentEncoded(pathname) || !/^(\?db=\d+)?$/.test(search)) throw refusal('a URL such as unix:///run/valkey.sock or unix:///run/valkey.sock?db=2 when its scheme is unix')
    return
  }
  if (hostname === '') throw refusal('a URL with a host')
  if (!/^(\/\d*)?$/.test(pathname)) throw refusal('a URL whose path is a database number')
  if (!isPercentEncoded(username) || !isPercentEncoded(password)) {
    throw refusal('a URL whose user and password are percent-encoded (% is %25)')
  }
}

function isPercentEncoded (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function checkCache (cache: RegistryOptions['cache'] = {}): CheckedRegistryOptions['cache'] {
  if (cache === false) return null
  if (typeof cache !== 'object' || cache === null) throw expected('cache', 'an object or false', cache)
  const { ttl = 5000, max = 10_000 } = cache
  if (!isNumber(ttl) || ttl < 0 || ttl > maxTimerMs) throw expected('cache.ttl', `a number of milliseconds from 0 to ${maxTimerMs}`, ttl)
  if (!Number.isInteger(max) || max < 0 || max > maxCacheEntries) throw expected('cache.max', `an integer from 0 to ${maxCacheEntries}`, max)
  return ttl === 0 || max === 0 ? null : { ttlMs: ttl, max }
}

function checkText (name: string, text: unknown, maxBytes: number, code: 'PLT_COORDINATOR_INVALID_ID' | 'PLT_COORDINATOR_INVALID_OPTION' = 'PLT_COORDINATOR_INVALID_OPTION'): asserts text is string {
  if (typeof text !== 'string' || text === '') throw new CoordinatorError(code, `Expected ${name} to be a non-empty string, got ${describe(text)}`)
  if (!text.isWellFormed()) throw new CoordinatorError(code, `Expected ${name} to be well-formed Unicode, got a lone surrogate in ${describe(text)}`)
  // A UTF-16 unit takes at most three bytes of UTF-8: short ids are not measured.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) {
    throw new CoordinatorError(code, `Expected ${name} to have at most ${maxBytes} bytes of UTF-8, got ${Buffer.byteLength(text)}`)
  }
}

function checkObject (options: unknown): void {
  if (typeof options !== 'object' || options === null) throw expected('options', 'an object', options)
}

/** @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkBoolean (name: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw expected(name, 'a boolean', value)
}

function isAddress (text: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(text) && text.isWellFormed() && URL.canParse(text) && new URL(text).host !== ''
}

function isNumber (value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Checks one that was made by `{}`, a class of the application or with a null prototype; not a Map, an array or another built-in. */
function isPlainObject (value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}

function encodeJson (name: string, value: unknown): string | undefined {
  let cause: unknown
  try {
    const json = JSON.stringify(value)
    if (json !== undefined || value === undefined) return json
  } catch (error) {
    cause = error
  }
  throw new CoordinatorError('PLT_COORDINATOR_INVALID_METADATA', `Expected metadata.${name} to be writable as JSON, got ${describe(value)}`, cause)
}

/** Makes the refusal of an option: the thing, its rule and what came. */
export function expected (name: string, rule: string, value: unknown): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_INVALID_OPTION', `Expected ${name} to be ${rule}, got ${describe(value)}`)
}
