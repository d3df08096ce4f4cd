import type { IncomingHttpHeaders } from 'node:http'
import { Readable, Transform } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { toClientHeaders } from './headers.ts'
import { refuse } from './refusal.ts'
import type { Sending } from './upstream.ts'

/** The reply of a pod, its body unread. Status and headers stand on the client's reply already. */
export interface PodReply {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  readonly stream: Readable
  readonly sending: Sending
}

/** Sends the body of a pod's reply, with its trailers. */
export function deliver (reply: FastifyReply, { headers, sending }: PodReply, body: Readable): void {
  if (headers.trailer !== undefined && reply.request.raw.httpVersion !== '1.0') promiseTrailers(reply, headers.trailer, sending)
  // A reply that breaks off before its first byte is as broken as any other, and must not turn into an answer of Fastify's.
  body.on('error', () => { if (!reply.raw.headersSent) reply.raw.destroy() })
  if (reply.statusCode === 204 || reply.statusCode === 304 || reply.request.method === 'HEAD') {
    // Bare, whatever length they name: undici takes a 304 that names one for a body that is missing.
    body.on('error', () => {}).resume()
    reply.send()
    return
  }
  // When it flows Fastify has set the headers, after the application's onSend hooks.
  if (headers['content-length'] === undefined) body.once('resume', () => setImmediate(sendHead, reply))
  reply.send(body)
}

/** Lets an event stream open before its first event. */
function sendHead ({ raw }: FastifyReply): void {
  if (!raw.headersSent && !raw.destroyed) raw.flushHeaders()
}

function promiseTrailers (reply: FastifyReply, names: string, sending: Sending): void {
  for (const name of String(names).split(',')) {
    const trailer = name.trim().toLowerCase()
    try {
      reply.trailer(trailer, async () => sending.trailers?.[trailer] ?? '')
    } catch { // a name that HTTP forbids as a trailer
    }
  }
}

/**
 * Sends a body that was read. As bytes where Fastify adds nothing to the head for it: a stream costs a tenth of the request. Otherwise it
 * would add a content-type, or a length where the pod sent none.
 */
export function deliverBytes (reply: FastifyReply, podReply: PodReply, body: Buffer): void {
  // Of the reply, not of the pod: `rewriteHeaders` may have taken them away.
  const isWhole = reply.hasHeader('content-type') && reply.hasHeader('content-length') && podReply.headers.trailer === undefined
  if (isWhole && reply.statusCode !== 204 && reply.statusCode !== 304 && reply.request.method !== 'HEAD') reply.send(body)
  else deliver(reply, podReply, toStream(body))
}

function toStream (body: Buffer): Readable {
  return new Readable({
    read () {
      if (body.length > 0) this.push(body)
      this.push(null)
    }
  })
}

/** Gives up a reply that is not passed on, and with it the pod's connection. */
export function discard ({ stream }: PodReply): void {
  stream.on('error', () => {}).destroy()
}

/** Whether the whole answer went out; HTTP/2 has it that a stream which was reset is finished too. */
export function isFinished ({ raw }: FastifyReply): boolean {
  const { stream } = raw as { stream?: { aborted?: boolean } | null }
  return stream === undefined ? raw.writableFinished : stream !== null && stream.aborted !== true && raw.writableEnded
}

/** Ends a reply whose pod pauses too long; a client that reads slowly is not the pod's pause. */
export function cutWhenIdle (stream: Readable, ms: number): Readable {
  let timer: NodeJS.Timeout | undefined
  const guarded = new Transform({
    transform (chunk, _encoding, next) {
      start()
      next(null, chunk)
    },
    destroy (error, done) {
      clearTimeout(timer)
      if (!stream.destroyed) stream.destroy()
      done(error)
    }
  })
  const start = (): void => {
    clearTimeout(timer)
    timer = setTimeout(onTime, ms)
  }
  const onTime = (): void => {
    if (guarded.readableLength + guarded.writableLength + stream.readableLength > 0) start()
    else guarded.destroy(Object.assign(new Error(`The pod sent nothing for ${ms} ms`), { refusal: refuse('PLT_COORDINATOR_POD_TIMEOUT') }))
  }
  start()
  stream.on('error', error => guarded.destroy(error))
  return stream.pipe(guarded)
}

/** Passes on an informational reply (1xx) that comes before the reply itself. */
export function passInformation (reply: FastifyReply, { statusCode, headers }: { statusCode: number, headers: IncomingHttpHeaders }): void {
  if (reply.raw.headersSent || reply.raw.destroyed) return
  try {
    if (statusCode === 103 && headers.link !== undefined) reply.raw.writeEarlyHints(toClientHeaders(headers) as Record<string, string>)
    else if (statusCode === 102) reply.raw.writeProcessing()
  } catch { // a hint that node does not write is no loss; an error here would end the request
  }
}
