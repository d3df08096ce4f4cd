import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import type { Controller, Receiver, Sender } from './sender.ts'

/** Sends to one address and hands the reply to node's, around Fastify's; with no duty at all. */
export function sendDirectly (sender: Sender, address: string): RouteHandlerMethod {
  const { host } = new URL(address)
  return (request, reply) => {
    reply.hijack()
    sender.dispatch(toSent(request, address, host), new Direct(reply.raw))
  }
}

/** Sends to one address by `request` of undici, and its stream through Fastify: what is left of `reply.from` without reply-from. */
export function sendByRequest (sender: Sender, address: string): RouteHandlerMethod {
  const { host } = new URL(address)
  return (request, reply): FastifyReply => {
    sender.request(toSent(request, address, host), (error, { statusCode, headers, body }) => {
      if (error !== null) reply.code(502).send()
      else reply.code(statusCode).headers(headers as Record<string, string>).send(body)
    })
    return reply
  }
}

function toSent (request: FastifyRequest, origin: string, host: string): Parameters<Sender['dispatch']>[0] {
  const { method = 'GET', url = '/' } = request.raw
  return { origin, path: url, method, headers: { ...request.headers, host }, body: request.body instanceof Readable ? request.body : undefined, headersTimeout: 0, bodyTimeout: 0 }
}

class Direct implements Receiver {
  readonly #raw: ServerResponse

  constructor (raw: ServerResponse) {
    this.#raw = raw
  }

  onRequestStart (): void {}

  onResponseStart (_controller: Controller, statusCode: number, headers: IncomingHttpHeaders): void {
    if (statusCode >= 200) this.#raw.writeHead(statusCode, headers)
  }

  onResponseData (controller: Controller, chunk: Buffer): void {
    if (this.#raw.write(chunk)) return
    controller.pause()
    this.#raw.once('drain', () => controller.resume())
  }

  onResponseEnd (): void {
    this.#raw.end()
  }

  onResponseError (): void {
    this.#raw.destroy()
  }
}
