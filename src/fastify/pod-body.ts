import { Readable, Transform } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { getBodyLimit, getKeptBytes, hasBody } from './exact-bodies.ts'
import { refuse } from './refusal.ts'

/** The body of a request as it goes to the pod: bytes that can be sent again, or a stream that cannot. */
export type PodBody = Buffer | Readable | undefined

// Bodies up to this size are read whole before they are sent, so that they can be sent once more.
const heldBytes = 64 * 1024
/** Configurations of the routes that were named in the log. */
const warnedRoutes = new WeakSet<object>()

/** Takes the body of a request, whichever way the application has treated it. @throws a refusal */
export async function takePodBody (request: FastifyRequest): Promise<PodBody> {
  const kept = getKeptBytes(request)
  if (kept !== undefined) return kept.length > 0 ? kept : undefined
  if (request.body instanceof Readable) return await takeStream(request, request.body)
  if (!hasBody(request)) return undefined
  // Unusual, yet HTTP allows it: Fastify leaves the body of a GET unread.
  if (request.method === 'GET' || request.method === 'HEAD') return await takeStream(request, request.raw)
  return writeAgain(request)
}

async function takeStream (request: FastifyRequest, stream: Readable): Promise<PodBody> {
  const limit = getBodyLimit(request)
  const length = request.headers['content-length']
  if (Number(length ?? 0) > limit) throw refuse('PLT_COORDINATOR_BODY_TOO_LARGE')
  if (length === undefined || Number(length) > heldBytes) return limit === Infinity ? stream : limitStream(stream, limit)
  const chunks: Buffer[] = []
  try {
    for await (const chunk of stream) chunks.push(chunk)
  } catch (error) {
    throw refuse('PLT_COORDINATOR_CLIENT_GONE', { cause: error })
  }
  return Buffer.concat(chunks)
}

function limitStream (stream: Readable, limit: number): Readable {
  let received = 0
  const limited = new Transform({
    transform (chunk: Buffer, _encoding, next) {
      received += chunk.length
      if (received > limit) next(Object.assign(new Error('The body is larger than the route allows'), { refusal: refuse('PLT_COORDINATOR_BODY_TOO_LARGE') }))
      else next(null, chunk)
    }
  })
  stream.on('error', error => limited.destroy(error))
  return stream.pipe(limited)
}

/**
 * Writes a body that Fastify parsed as reply-from does. JSON loses what parsing loses (digits of large numbers, repeated keys, spaces), so
 * the route is named once in the log; what has no such form is refused rather than sent as something else.
 */
function writeAgain (request: FastifyRequest): Buffer {
  const { body } = request
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (Buffer.isBuffer(body)) return body
  const { config, url = '(not found)' } = request.routeOptions
  if (!warnedRoutes.has(config)) {
    warnedRoutes.add(config)
    request.log.warn({ code: 'PLT_COORDINATOR_BODY_PARSED', route: `${request.method} ${url}` },
      'The body was parsed before it is passed on: register the coordinator plugin or exactBodies before this route, or set config.coordinator.raw')
  }
  if (body !== undefined && (type === 'application/json' || type.endsWith('+json'))) return Buffer.from(JSON.stringify(body))
  if (typeof body === 'string') return Buffer.from(body)
  throw refuse('PLT_COORDINATOR_BODY_NOT_WRITABLE')
}

/** The body as reply-from wants to be told of it. */
export function toBodyOption (body: PodBody, contentType: string | undefined, isExact: boolean): { body?: unknown, contentType?: string } {
  // The sender of the plugin takes the body from the sending; elsewhere reply-from passes on a stream by itself.
  if (isExact || body === undefined) return { body: null }
  return Buffer.isBuffer(body) ? { body, contentType: contentType || 'application/octet-stream' } : {}
}
