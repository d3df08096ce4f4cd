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

/** Takes the body of a request, whichever way the application has treated it; a promise only where it has to be read. @throws a refusal */
export function takePodBody (request: FastifyRequest): PodBody | Promise<PodBody> {
  const kept = getKeptBytes(request)
  if (kept !== undefined) return kept.length > 0 ? kept : undefined
  if (request.body instanceof Readable) return takeStream(request, request.body)
  if (!hasBody(request)) return undefined
  // Unusual, yet HTTP allows it: Fastify leaves the body of a GET unread.
  if (request.method === 'GET' || request.method === 'HEAD') return takeStream(request, request.raw)
  return writeAgain(request)
}

function takeStream (request: FastifyRequest, stream: Readable): PodBody | Promise<PodBody> {
  const limit = getBodyLimit(request)
  const length = request.headers['content-length']
  if (Number(length ?? 0) > limit) throw refuse('PLT_COORDINATOR_BODY_TOO_LARGE')
  if (length === undefined || Number(length) > heldBytes) return limit === Infinity ? stream : limitStream(stream, limit)
  return readWhole(stream)
}

/** By its events: a loop over the stream made a dozen promises for each body. */
function readWhole (stream: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const onEnd = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
      try { // here nobody else would catch it: a hook may have put a stream of anything in the place of the body
        resolve(toBuffer(chunks))
      } catch (error) {
        reject(error)
      }
    }
    const onCut = (cause?: unknown): void => {
      // An error may follow the close, and must find a listener.
      stream.off('data', onData).off('end', onEnd)
      reject(refuse('PLT_COORDINATOR_CLIENT_GONE', { cause }))
    }
    const onData = (chunk: Buffer | string): void => { chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk) }
    if (stream.readableEnded) return onEnd()
    if (stream.destroyed) return onCut(stream.errored)
    stream.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut)
  })
}

/** What was read; most bodies come in one piece, which needs no copy. */
export function toBuffer (chunks: Buffer[]): Buffer {
  const [only] = chunks
  return chunks.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(chunks)
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
