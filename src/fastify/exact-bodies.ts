import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { Transform } from 'node:stream'
import fp from 'fastify-plugin'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'

/** What a handler of ours asks of the route it is put on. */
export interface HandlerTraits {
  readonly parseBody: boolean | undefined
  readonly takesUpgrades: boolean
}

// Read between preParsing and preValidation alone, where it makes Fastify hand over the stream unread. Random, so that no client can
// name it on a route that is not ours.
const privateType = `application/x-coordinator-${randomUUID()}`
const traits = new WeakMap<object, HandlerTraits>()
const trueTypes = new WeakMap<FastifyRequest, string | undefined>()
const keptBytes = new WeakMap<FastifyRequest, Buffer>()
// Fastify parses no body of these.
const unparsedMethods = new Set(['GET', 'HEAD', 'TRACE'])
const limitKey = Symbol('coordinator.bodyLimit')

/** Marks a handler as ours, for the routes that get it from here on. */
export function markHandler<H extends object> (handler: H, handlerTraits: HandlerTraits): H {
  traits.set(handler, handlerTraits)
  return handler
}

export function getTraits (handler: object): HandlerTraits | undefined {
  return traits.get(handler)
}

/** The bytes of a body that was parsed on a route of ours. */
export function getKeptBytes (request: FastifyRequest): Buffer | undefined {
  return keptBytes.get(request)
}

/** Bytes a streamed body may have; Infinity where the route sets no `bodyLimit` of its own. */
export function getBodyLimit (request: FastifyRequest): number {
  return (request.routeOptions.config as { [limitKey]?: number })[limitKey] ?? Infinity
}

/**
 * Fastify plugin that makes the standalone helpers exact: on routes whose handler is one of ours, or that say
 * `config: { coordinator: { raw: true } }`, bodies of every content type reach the pod byte for byte. Part of the coordinator plugin.
 * Register it before the routes.
 */
export const exactBodies = fp(async (app: FastifyInstance) => {
  if (app.hasContentTypeParser(privateType)) return
  app.addContentTypeParser(privateType, (request, payload, done) => {
    // Here, since the application's own preValidation hooks run before those of the route.
    if (restoreType(request)) return done(null, hasBody(request) ? payload : undefined)
    done(Object.assign(new Error('Unsupported Media Type'), { statusCode: 415, code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE' }), undefined)
  })
  app.addHook('onRoute', prepareRoute)
}, { name: '@platformatic/coordinator-exact-bodies', fastify: '5.x' })

function prepareRoute (route: RouteOptions): void {
  const handlerTraits = traits.get(route.handler)
  if (handlerTraits === undefined && (route.config as { coordinator?: { raw?: boolean } } | undefined)?.coordinator?.raw !== true) return
  if (route.bodyLimit !== undefined) route.config = { ...route.config, [limitKey]: route.bodyLimit } as NonNullable<RouteOptions['config']>
  const wantsParse = handlerTraits?.parseBody ?? (route.schema as { body?: unknown } | undefined)?.body !== undefined
  // Where a scope has replaced all parsers its own has seen the header: it must not go further.
  route.preValidation = [restoreInHook, ...toArray(route.preValidation)] as NonNullable<RouteOptions['preValidation']>
  route.preParsing = [...toArray(route.preParsing), wantsParse ? keepBytes : hideType] as NonNullable<RouteOptions['preParsing']>
}

type Done = (error: Error | null, payload?: Readable) => void

/** Has the stream handed over unread, where Fastify would look for a parser: when there is a body, or a type without one. */
function hideType (request: FastifyRequest, _reply: unknown, payload: Readable, done: Done): void {
  const type = request.headers['content-type']
  if (!unparsedMethods.has(request.method) && request.server.hasContentTypeParser(privateType) && (type !== undefined || hasBody(request))) {
    trueTypes.set(request, type)
    setType(request, privateType)
  }
  done(null, payload)
}

/** Puts the true header back; false for a request whose header was not hidden. */
function restoreType (request: FastifyRequest): boolean {
  if (!trueTypes.has(request)) return false
  setType(request, trueTypes.get(request))
  return true
}

function restoreInHook (request: FastifyRequest, _reply: unknown, done: Done): void {
  if (request.headers['content-type'] === privateType) restoreType(request)
  done(null)
}

function setType (request: FastifyRequest, type: string | undefined): void {
  if (type === undefined) delete request.headers['content-type']
  else request.headers['content-type'] = type
  // Fastify keeps what it made of the header when `request.mediaType` was read first.
  for (const symbol of Object.getOwnPropertySymbols(request)) {
    if (symbol.description === 'fastify.request.contentType') Object.assign(request, { [symbol]: undefined })
  }
}

/**
 * Keeps what Fastify's parser reads. A type without a parser is not read at all: it is the callbacks' loss, not the client's. Nor is one
 * whose parser was registered by a RegExp, which Fastify does not tell of.
 */
function keepBytes (request: FastifyRequest, reply: unknown, payload: Readable, done: Done): void {
  if (!hasBody(request)) return hideType(request, reply, payload, done)
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type === undefined || !(request.server.hasContentTypeParser(type) || request.server.hasContentTypeParser('*'))) {
    return hideType(request, reply, payload, done)
  }
  const chunks: Buffer[] = []
  let received = 0
  const kept = new Transform({
    transform (chunk: Buffer, _encoding, next) {
      chunks.push(chunk)
      received += chunk.length
      next(null, chunk)
    },
    flush (next) {
      keptBytes.set(request, Buffer.concat(chunks))
      next()
    }
  })
  // What Fastify holds against the content-length: a hook that unpacked the body counts what came packed.
  Object.defineProperty(kept, 'receivedEncodedLength', { get: () => (payload as { receivedEncodedLength?: number }).receivedEncodedLength ?? received })
  payload.on('error', error => kept.destroy(error))
  done(null, payload.pipe(kept))
}

/** Whether the client sends a body: by its headers in HTTP/1; in HTTP/2 every stream may have one. */
export function hasBody ({ headers, raw }: FastifyRequest): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const length = headers['content-length']
  return length === undefined ? raw.httpVersionMajor === 2 && raw.method !== 'GET' && raw.method !== 'HEAD' : length !== '0'
}

function toArray<T> (hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks]
}
