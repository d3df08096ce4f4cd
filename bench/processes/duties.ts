import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'

/** What `lookupAndProxy` does beside finding the pod, one by one. A good hand would write these over reply.from like this. */
export interface Duties {
  /** The client's leaving stops the pod: by an emitter, which undici takes as well, or by an AbortSignal. Needs the sender made here. */
  readonly signal?: 'emitter' | 'abort'
  /** A pod that does not answer in time is given up. */
  readonly timeout?: boolean
  /** Hop-by-hop and private headers stop here, forwarded ones are set. */
  readonly requestHeaders?: boolean
  /** Hop-by-hop headers of the reply stop here. */
  readonly replyHeaders?: boolean
  /** Nothing is sent again by reply-from, and a failure has an answer of its own. */
  readonly failures?: boolean
  /** The body is read before it is sent, so that it could be sent to another pod. */
  readonly heldBody?: boolean
}

/** Those of the limit for `lookupAndProxy`. */
export const fixedDuties: Duties = { signal: 'emitter', timeout: true, requestHeaders: true, replyHeaders: true, failures: true }

type FromOptions = NonNullable<Parameters<FastifyReply['from']>[1]>

const timeoutMs = 10_000
const hopByHop = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'
])
const signalKey = Symbol('bench.signal')

/** Stops a request; undici listens for its 'abort', or for that of its signal. */
interface Stop {
  readonly signal: AbortSignal | EventEmitter
  abort (): void
}

class Emitter extends EventEmitter implements Stop {
  aborted = false

  get signal (): EventEmitter {
    return this
  }

  abort (): void {
    this.aborted = true
    this.emit('abort')
  }
}

interface SenderRequest {
  headers: IncomingHttpHeaders & { [signalKey]?: Stop['signal'] }
  [option: string]: unknown
}

interface Sender {
  request (options: SenderRequest, callback: unknown): void
  destroy (): Promise<void>
}

/** A sender for reply-from that hands the signal of a request to undici. */
export function createSender (): Sender {
  const require = createRequire(import.meta.url)
  const { Agent } = createRequire(require.resolve('@fastify/reply-from'))('undici') as { Agent: new (options: object) => Sender }
  const agent = new Agent({ pipelining: 1, connections: null })
  return {
    request: (options, callback) => agent.request({ ...options, signal: options.headers[signalKey], headersTimeout: 0, bodyTimeout: 0 }, callback),
    destroy: () => agent.destroy()
  }
}

/** A route handler that sends to one address with these duties and no others; with none of them it is bare reply.from. */
export function proxyWith (address: string, duties: Duties): RouteHandlerMethod {
  const hasAny = Object.keys(duties).length > 0
  const send = (request: FastifyRequest, reply: FastifyReply, body?: Buffer): FastifyReply => {
    return reply.from(address + request.url, hasAny ? toOptions(request, reply, duties, body) : undefined)
  }
  if (duties.heldBody !== true) return send
  return async (request, reply) => {
    if (!(request.body instanceof Readable)) return send(request, reply)
    const chunks: Buffer[] = []
    for await (const chunk of request.body) chunks.push(chunk)
    return send(request, reply, Buffer.concat(chunks))
  }
}

function toOptions (request: FastifyRequest, reply: FastifyReply, { signal, timeout, requestHeaders, replyHeaders, failures }: Duties, body?: Buffer): FromOptions {
  const options: FromOptions = body === undefined ? {} : { body, contentType: request.headers['content-type'] ?? 'application/octet-stream' }
  const controller: Stop | undefined = signal === undefined ? undefined : signal === 'emitter' ? new Emitter() : new AbortController()
  if (controller !== undefined) {
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) controller.abort()
    })
  }
  if (requestHeaders || controller !== undefined) {
    options.rewriteRequestHeaders = (_request, given) => {
      const headers: SenderRequest['headers'] = requestHeaders ? toPodHeaders(request, given as IncomingHttpHeaders) : given as IncomingHttpHeaders
      if (controller !== undefined) headers[signalKey] = controller.signal
      return headers
    }
  }
  if (replyHeaders) options.rewriteHeaders = headers => copyEndToEnd(headers as IncomingHttpHeaders)
  if (timeout) limitTime(request, reply, controller, options)
  if (failures) {
    options.retryDelay = () => null
    options.onError = () => { reply.code(502).send({ statusCode: 502, error: 'Bad Gateway' }) }
  }
  return options
}

/** Gives up by the signal where there is one; else with an answer. The time starts when the request has come in whole. */
function limitTime (request: FastifyRequest, reply: FastifyReply, controller: Stop | undefined, options: FromOptions): void {
  let timer: NodeJS.Timeout | undefined
  const startTimer = (): void => {
    timer = setTimeout(() => {
      if (controller !== undefined) controller.abort()
      else reply.code(504).send({ statusCode: 504, error: 'Gateway Timeout' })
    }, timeoutMs)
  }
  if (request.body instanceof Readable) request.body.once('end', startTimer)
  else startTimer()
  options.onResponse = (_request, _reply, response) => {
    clearTimeout(timer)
    reply.send((response as unknown as { stream: Readable }).stream)
  }
}

function toPodHeaders (request: FastifyRequest, given: IncomingHttpHeaders): IncomingHttpHeaders {
  const headers = copyEndToEnd(given, name => !name.startsWith('x-coordinator-') && name !== 'expect')
  const peer = request.socket.remoteAddress ?? request.ip
  headers['x-forwarded-for'] = (request.ips?.length ?? 0) > 1 ? `${String(given['x-forwarded-for'])}, ${peer}` : peer
  headers['x-forwarded-host'] = request.host
  headers['x-forwarded-proto'] = request.protocol
  return headers
}

const none: readonly string[] = []

// Nothing is deleted afterwards: an object with a hole is slow to walk.
function copyEndToEnd (given: IncomingHttpHeaders, isWanted: (name: string) => boolean = () => true): IncomingHttpHeaders {
  const { connection } = given
  const named = connection === undefined || connection === 'keep-alive' || connection === 'close' ? none : String(connection).toLowerCase().split(',').map(name => name.trim())
  const headers: IncomingHttpHeaders = {}
  for (const name in given) {
    if (!hopByHop.has(name) && isWanted(name) && !named.includes(name)) headers[name] = given[name]
  }
  return headers
}
