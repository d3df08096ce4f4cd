import { isRefusal, refuse } from './refusal.ts'
import type { Refusal } from './refusal.ts'

export interface PodFailure {
  readonly refusal: Refusal
  /** Nothing can have reached the pod. */
  readonly isUnreachable: boolean
  /** The connection ended before a byte of the reply came. */
  readonly isCut: boolean
}

// Before a connection stood.
const unreachableCodes = new Set([
  'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'
])
const cutCodes = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])
const badRequestCodes = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'ERR_INVALID_URL'])

/** Says what a failed sending means. */
export function classify (error: Error, stopped: 'left' | 'timeout' | undefined, isClientGone: boolean): PodFailure {
  const cause = error.cause ?? error
  const code = (cause as { code?: unknown }).code
  const refusal = (cause as { refusal?: unknown }).refusal
  const is = (refusal: Refusal, isUnreachable = false, isCut = false): PodFailure => ({ refusal, isUnreachable, isCut })
  if (isRefusal(refusal)) return is(refusal)
  if (stopped === 'timeout') return is(refuse('PLT_COORDINATOR_POD_TIMEOUT', { cause }))
  if (stopped === 'left' || isClientGone) return is(refuse('PLT_COORDINATOR_CLIENT_GONE', { cause }))
  if (typeof code === 'string') {
    if (unreachableCodes.has(code)) return is(refuse('PLT_COORDINATOR_POD_UNREACHABLE', { cause }), true)
    if (cutCodes.has(code)) return is(refuse('PLT_COORDINATOR_POD_UNREACHABLE', { cause }), false, true)
    if (code === 'UND_ERR_HEADERS_TIMEOUT') return is(refuse('PLT_COORDINATOR_POD_TIMEOUT', { cause }))
    if (badRequestCodes.has(code)) return is(refuse('PLT_COORDINATOR_INVALID_PATH', { cause }))
  }
  return is(refuse('PLT_COORDINATOR_POD_UNREACHABLE', { cause }))
}
