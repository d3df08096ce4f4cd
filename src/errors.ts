/** Every code this library throws or reports, with the HTTP status the helpers answer it with. */
const statusCodes = {
  /** A constructor or method option breaks its rule. Nothing was opened or written. */
  PLT_COORDINATOR_INVALID_OPTION: 500,
  /** A destination, member or lock id is empty, not a string, ill-formed or too long. No key was touched. */
  PLT_COORDINATOR_INVALID_ID: 400,
  /** Lock metadata names a reserved field or holds a value that cannot be written. */
  PLT_COORDINATOR_INVALID_METADATA: 400,
  /** A Cluster client, or a cluster behind a URL, without a hash tag in the key prefix. */
  PLT_COORDINATOR_NO_HASH_TAG: 500,
  /** A method of the member index was called on an instance that does not maintain it. */
  PLT_COORDINATOR_MEMBER_INDEX_OFF: 500,
  /** The prefix is used with another set of features, and `strictFeatures` is on. */
  PLT_COORDINATOR_FEATURE_MISMATCH: 500,
  /** The allocation strategy threw; its error is the `cause`. */
  PLT_COORDINATOR_STRATEGY_FAILED: 500,
  /** The allocation strategy returned something that was not among its candidates. */
  PLT_COORDINATOR_NOT_A_CANDIDATE: 500,
  /** `getLoad` threw, took too long, or returned something that is no number. Reported, never thrown. */
  PLT_COORDINATOR_LOAD_UNKNOWN: 500,
  /** Another process registered the same memberId later: this one no longer writes. */
  PLT_COORDINATOR_SUPERSEDED: 409,
  /** The call needs `register()` first, or again after `deregister()`. */
  PLT_COORDINATOR_NOT_REGISTERED: 409,
  /** Valkey did not answer in time, and a write has an unknown outcome; or it answered that it is loading, read-only or full. */
  PLT_COORDINATOR_UNAVAILABLE: 503,
  /** Valkey answered, and refused: a key of another type, no permission. */
  PLT_COORDINATOR_STORE_REFUSED: 500,
  /** `close()` was called on this instance. */
  PLT_COORDINATOR_CLOSED: 503
} as const

/** All codes. */
export type CoordinatorErrorCode = keyof typeof statusCodes

/** The one class of error this library makes; `code` tells the case, `cause` keeps what lay beneath. */
export class CoordinatorError extends Error {
  readonly code: CoordinatorErrorCode
  /** The HTTP status that fits the case. */
  readonly statusCode: number

  constructor (code: CoordinatorErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CoordinatorError'
    this.code = code
    this.statusCode = statusCodes[code]
  }
}

/** True for an error of this library, of the given code where one is named. */
export function isCoordinatorError (error: unknown, code?: CoordinatorErrorCode): error is CoordinatorError {
  return error instanceof CoordinatorError && (code === undefined || error.code === code)
}

/** Says what came in place of what was expected; long text is cut so that a message stays one line. */
export function describe (value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'string') return `${JSON.stringify(value.length > 64 ? `${value.slice(0, 64)}…` : value)} (string)`
  if (value instanceof Promise) return 'a promise'
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  if (typeof value === 'function') return 'a function'
  return `${String(value).replace(/\s+/g, ' ').slice(0, 64)} (${typeof value})`
}
