import type { FastifyReply } from 'fastify'
import { CoordinatorError } from '../errors.ts'
import type { HelperResult, ProxyTarget } from './types.ts'

/** Each way a helper answers without a pod: status, what `onResult` hears, and the texts. No text holds an address. */
const refusals = {
  PLT_COORDINATOR_NOT_FOUND: { statusCode: 404, result: 'not_found', error: 'Not Found', message: 'Nothing is bound there, or no pod of it is live' },
  PLT_COORDINATOR_DEAD_POD: { statusCode: 204, result: 'deregistered_dead_pod', error: '', message: 'All pods were dead: forgotten without them' },
  PLT_COORDINATOR_NO_PODS: { statusCode: 503, result: 'unavailable', error: 'Service Unavailable', message: 'No pod takes anything new' },
  PLT_COORDINATOR_POD_DRAINING: { statusCode: 503, result: 'refused', error: 'Service Unavailable', message: 'The pod takes nothing new any more' },
  PLT_COORDINATOR_ALREADY_BOUND: { statusCode: 409, result: 'refused', error: 'Conflict', message: 'The id is bound to another pod' },
  PLT_COORDINATOR_INVALID_ID: { statusCode: 400, result: 'bad_request', error: 'Bad Request', message: 'The request names no usable id' },
  PLT_COORDINATOR_INVALID_PATH: { statusCode: 400, result: 'bad_request', error: 'Bad Request', message: 'The path cannot be passed on' },
  PLT_COORDINATOR_BODY_TOO_LARGE: { statusCode: 413, result: 'bad_request', error: 'Payload Too Large', message: 'The body is larger than the route allows' },
  PLT_COORDINATOR_CLIENT_GONE: { statusCode: 499, result: 'aborted', error: 'Client Closed Request', message: 'The client left before the reply' },
  PLT_COORDINATOR_BODY_NOT_WRITABLE: { statusCode: 500, result: 'upstream_error', error: 'Internal Server Error', message: 'The parsed body cannot be written again' },
  PLT_COORDINATOR_CALLBACK_FAILED: { statusCode: 500, result: 'upstream_error', error: 'Internal Server Error', message: 'A callback of the route failed' },
  PLT_COORDINATOR_UPGRADE_NOT_SUPPORTED: { statusCode: 501, result: 'bad_request', error: 'Not Implemented', message: 'This route takes no upgrades' },
  PLT_COORDINATOR_POD_UNREACHABLE: { statusCode: 502, result: 'unreachable', error: 'Bad Gateway', message: 'The pod could not be reached, or broke off before its reply' },
  PLT_COORDINATOR_POD_TIMEOUT: { statusCode: 504, result: 'timeout', error: 'Gateway Timeout', message: 'The pod did not reply in time' },
  PLT_COORDINATOR_UNAVAILABLE: { statusCode: 503, result: 'store_unavailable', error: 'Service Unavailable', message: 'The routing store is not available' },
  PLT_COORDINATOR_FAILED: { statusCode: 500, result: 'upstream_error', error: 'Internal Server Error', message: 'The request could not be routed' }
} as const satisfies Record<string, { statusCode: number, result: HelperResult, error: string, message: string }>

export type RefusalCode = keyof typeof refusals

export interface Refusal {
  readonly code: RefusalCode
  readonly statusCode: number
  readonly result: HelperResult
  /** Text of the answer's `error`. */
  readonly error: string
  readonly message: string
  readonly cause?: unknown
}

const refusalMark = Symbol('refusal')

/** Makes a refusal, with another status or text where the route says so. */
export function refuse (code: RefusalCode, changes: { statusCode?: number | undefined, error?: string | undefined, cause?: unknown } = {}): Refusal {
  const { statusCode, result, error, message } = refusals[code]
  const refusal = { code, statusCode: changes.statusCode ?? statusCode, result, error: changes.error ?? error, message, cause: changes.cause }
  return Object.assign(refusal, { [refusalMark]: true })
}

export function isRefusal (value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && refusalMark in value
}

/** The refusal that an error of the library, or of a callback, stands for. */
export function toRefusal (error: unknown): Refusal {
  if (isRefusal(error)) return error
  if (!(error instanceof CoordinatorError)) {
    // How @fastify/reply-from refuses a path that leads out of its place, where it does the sending itself.
    const isPathRefused = error instanceof URIError || (error as { statusCode?: unknown } | null)?.statusCode === 400
    return refuse(isPathRefused ? 'PLT_COORDINATOR_INVALID_PATH' : 'PLT_COORDINATOR_CALLBACK_FAILED', { cause: error })
  }
  if (error.code === 'PLT_COORDINATOR_INVALID_ID') return refuse('PLT_COORDINATOR_INVALID_ID', { cause: error })
  if (error.statusCode === 503) return refuse('PLT_COORDINATOR_UNAVAILABLE', { cause: error })
  return refuse('PLT_COORDINATOR_FAILED', { cause: error })
}

/** Sends a refusal and writes one line to the log. */
export function sendRefusal (reply: FastifyReply, refusal: Refusal, target: Partial<ProxyTarget> = {}): void {
  const { code, statusCode, error, message, cause } = refusal
  const { request } = reply
  request.log[statusCode >= 500 ? 'warn' : 'info']({ code, destinationId: target.destinationId, memberId: target.memberId, address: target.address, err: cause }, message)
  // A connection whose request was not read to its end cannot carry another one.
  if (!request.raw.complete && request.raw.httpVersionMajor === 1) reply.header('connection', 'close')
  if (statusCode === 502 || statusCode === 503) reply.header('retry-after', '1')
  reply.code(statusCode)
  if (statusCode === 204) reply.send()
  else reply.send({ statusCode, code, error, message })
}
