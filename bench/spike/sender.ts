import { createRequire } from 'node:module'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

/** What undici says of a request under way, and takes of it. */
export interface Controller {
  pause (): void
  resume (): void
  abort (reason: Error): void
}

/** What undici calls as a reply comes in (`DispatchHandler`). */
export interface Receiver {
  onRequestStart (controller: Controller): void
  onResponseStart (controller: Controller, statusCode: number, headers: IncomingHttpHeaders): void
  onResponseData (controller: Controller, chunk: Buffer): void
  onResponseEnd (controller: Controller, trailers: IncomingHttpHeaders): void
  onResponseError (controller: Controller, error: Error): void
}

export interface SentRequest {
  readonly origin: string
  readonly path: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer | Readable | undefined
  readonly headersTimeout: 0
  readonly bodyTimeout: 0
}

export interface Sender {
  dispatch (request: SentRequest, receiver: Receiver): boolean
  request (request: SentRequest, callback: (error: Error | null, reply: { statusCode: number, headers: IncomingHttpHeaders, body: Readable }) => void): void
}

/** An agent of the undici that reply-from has, with the options that ours has. */
export function createSender (): Sender {
  const require = createRequire(import.meta.url)
  const { Agent } = createRequire(require.resolve('@fastify/reply-from'))('undici') as { Agent: new (options: object) => Sender }
  return new Agent({ pipelining: 1, connections: null })
}
