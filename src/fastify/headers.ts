import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { PodBody } from './pod-body.ts'
import type { ProxyOptions } from './types.ts'

// What belongs to one connection and must not be passed on (RFC 9110, 7.6.1, with the older names that are still seen).
const hopByHop = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'
])
const ownPrefix = 'x-coordinator-'

/** The headers of a request as its pod gets them; their lengths and the host are set where it is sent. */
export function toPodHeaders (request: FastifyRequest): IncomingHttpHeaders {
  const headers = copyEndToEnd(request.headers, isForPod)
  if (request.headers.te === 'trailers') headers.te = 'trailers'
  setForwarded(headers, request)
  return headers
}

const methodsWithLength = new Set(['POST', 'PUT', 'PATCH'])

/** The headers that are sent: those of the duty, as the application changed them, with the length of the body and the pod's host. */
export function toSentHeaders (request: FastifyRequest, body: PodBody, host: string | undefined, rewrite: ProxyOptions['rewriteRequestHeaders']): IncomingHttpHeaders {
  const duty = toPodHeaders(request)
  const headers = rewrite === undefined ? duty : rewrite(request as never, duty) as IncomingHttpHeaders
  const length = body instanceof Readable ? request.headers['content-length'] : body?.length ?? (methodsWithLength.has(request.method) ? 0 : undefined)
  if (length !== undefined) headers['content-length'] = String(length)
  if (host !== undefined) headers.host = host
  return headers
}

/** The headers of a pod's reply as the client gets them, as the application changed them. @throws for a header that HTTP does not allow */
export function toChangedHeaders (headers: IncomingHttpHeaders, request: FastifyRequest, rewrite: ProxyOptions['rewriteHeaders']): IncomingHttpHeaders {
  const duty = toClientHeaders(headers)
  if (rewrite === undefined) return duty
  const changed = rewrite(duty, request as never) as IncomingHttpHeaders
  // Later nobody could catch it; a line break, let through by hand, would be a second header.
  for (const [name, value] of Object.entries(changed)) {
    validateHeaderName(name)
    for (const each of [value ?? ''].flat()) validateHeaderValue(name, String(each))
  }
  return changed
}

/** The headers of a pod's reply as the client gets them. */
export function toClientHeaders (headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return copyEndToEnd(headers)
}

// "100 Continue" was said by us: the pod gets the body when it is there.
function isForPod (name: string): boolean {
  return !name.startsWith(ownPrefix) && !name.startsWith(':') && name !== 'expect' && name !== 'content-length'
}

function copyEndToEnd (headers: IncomingHttpHeaders, isWanted: (name: string) => boolean = () => true): IncomingHttpHeaders {
  const named = namedInConnection(headers.connection)
  const copy: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (!hopByHop.has(name) && isWanted(name) && !named.includes(name)) copy[name] = headers[name]
  }
  return copy
}

const none: readonly string[] = []

function namedInConnection (connection: string | string[] | undefined): readonly string[] {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none
  return String(connection).toLowerCase().split(',').map(name => name.trim())
}

/**
 * `request.ips` has more than one address only when Fastify's trustProxy accepted the peer: only then does what the peer forwarded
 * count. `request.host` and `request.protocol` follow the same rule by themselves.
 */
function setForwarded (headers: IncomingHttpHeaders, request: FastifyRequest): void {
  const peer = request.socket.remoteAddress ?? request.ip
  const isTrusted = (request.ips?.length ?? 0) > 1
  headers['x-forwarded-for'] = isTrusted ? `${String(request.headers['x-forwarded-for'])}, ${peer}` : peer
  headers['x-forwarded-host'] = request.host
  headers['x-forwarded-proto'] = request.protocol
}
