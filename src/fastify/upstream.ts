import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReplyFromOptions } from '@fastify/reply-from'

/** What one sending of a request adds to what reply-from passes on, and what comes back beside the reply. */
export interface Sending {
  /** Path and query exactly as they came, behind the base path of the pod's address. */
  readonly path: string
  readonly body: Buffer | Readable | undefined
  readonly signal: StopSignal
  /** Called in place of reply-from's own handling, which would write a line to the log for each. */
  readonly onError: (error: Error) => void
  /** Called with informational replies (1xx). */
  readonly onInfo: (info: { statusCode: number, headers: IncomingHttpHeaders }) => void
  /** Filled when the reply has ended. */
  trailers?: Record<string, string>
}

/** Stops a sending: what undici needs of an AbortSignal, at a tenth of its cost. */
export class StopSignal extends EventEmitter {
  aborted = false

  abort (): void {
    if (this.aborted) return
    this.aborted = true
    this.emit('abort')
  }
}

/** The application that has our sender carries this mark. */
export const upstreamKey = Symbol('coordinator.upstream')

/** Under this name the sending travels in the headers: reply-from copies symbols, and senders that do not know it pass it over. */
export const sendingKey = Symbol('coordinator.sending')

interface SenderRequest {
  headers: IncomingHttpHeaders & { [sendingKey]?: Sending }
  [option: string]: unknown
}

interface SenderReply {
  statusCode: number
  body: Readable
  trailers: Record<string, string>
}

interface Sender {
  request (options: SenderRequest, callback: (error: Error | null, reply: SenderReply) => void): void
  destroy (): Promise<void> | undefined
}

const connectTimeoutMs = 1000

/**
 * The sender given to reply-from in place of its own: undici's Agent, with the signal, the exact path and body of each sending, which
 * reply-from has no option for. Certificates of pods are verified unless the options say otherwise.
 */
export function createUpstream (options: FastifyReplyFromOptions['undici']): Sender {
  const agent = isSender(options) ? options : createAgent({ ...options })
  return {
    request (options, callback) {
      const sending = options.headers[sendingKey]
      if (sending === undefined) return agent.request(options, callback)
      const { path, body, signal, onInfo, onError } = sending
      // undici's own timeouts would end event streams that idle; the signal carries ours.
      agent.request({ ...options, path, body, signal, onInfo, headersTimeout: 0, bodyTimeout: 0 }, (error, reply) => {
        if (error !== null) return onError(error)
        // Before reply-from copies headers and finds that Fastify takes no such status.
        if (reply.statusCode > 599) {
          reply.body.on('error', () => {}).destroy()
          return onError(new Error(`The pod answered with the status ${reply.statusCode}, which HTTP does not know`))
        }
        sending.trailers = reply.trailers
        callback(null, reply)
      })
    },
    destroy: () => agent.destroy()
  }
}

/** Whether an undici dispatcher was given, in place of options for one. */
export function isSender (options: unknown): options is Sender {
  return typeof options === 'object' && options !== null && 'request' in options && typeof options.request === 'function'
}

function createAgent ({ tls, ...options }: Record<string, unknown>): Sender {
  // undici is reply-from's dependency, not ours: taken from where reply-from has it, so that there is one.
  const require = createRequire(import.meta.url)
  const { Agent } = createRequire(require.resolve('@fastify/reply-from'))('undici') as { Agent: new (options: object) => Sender }
  // No limit of connections: idle event streams would use it up, and every other request to the pod would wait behind them unsent.
  return new Agent({ pipelining: 1, connections: null, connect: { timeout: connectTimeoutMs, ...tls as object }, ...options })
}
