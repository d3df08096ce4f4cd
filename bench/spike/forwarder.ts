import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import type { Registry } from '@platformatic/coordinator'
import { toClientHeaders, toSentHeaders } from '../../src/fastify/headers.ts'
import { takePodBody } from '../../src/fastify/pod-body.ts'
import type { PodBody } from '../../src/fastify/pod-body.ts'
import type { Controller, Receiver, Sender } from './sender.ts'

/**
 * How the reply goes out: around Fastify; as a stream through Fastify, as today; or through Fastify as bytes, where they are few and their
 * number is known.
 */
export type Delivery = 'raw' | 'stream' | 'bytes'

const timeoutMs = 10_000
const heldBytes = 64 * 1024

/**
 * What a forwarder of our own would cost: the lookup, the body held for a second sending, the header duties both ways, the signal, the
 * timeout, back pressure. It has no replay, no trailers, no 1xx, no upgrades and no callbacks.
 */
export function forward (sender: Sender, registry: Registry, delivery: Delivery): RouteHandlerMethod {
  const hosts = new Map<string, string>()
  const hostOf = (address: string): string => {
    const host = hosts.get(address) ?? new URL(address).host
    hosts.set(address, host)
    return host
  }
  const send = (forwarded: Forwarded, address: string, body: PodBody): void => {
    const { request } = forwarded
    const { method = 'GET', url = '/' } = request.raw
    const headers = toSentHeaders(request, body, hostOf(address), undefined)
    forwarded.start(body)
    sender.dispatch({ origin: address, path: url, method, headers, body, headersTimeout: 0, bodyTimeout: 0 }, forwarded)
  }
  const start = async (forwarded: Forwarded, id: string): Promise<void> => {
    const pod = await registry.resolveDestination(id)
    if (pod === null) return forwarded.fail(404)
    const body = takePodBody(forwarded.request)
    send(forwarded, pod.address, body instanceof Promise ? await body : body)
  }
  return (request, reply) => {
    if (delivery === 'raw') reply.hijack()
    const forwarded = new Forwarded(request, reply, delivery)
    start(forwarded, (request.params as { id: string }).id).catch(() => forwarded.fail(500))
  }
}

/** One request on its way, and the receiver of its reply: no object more than this. */
class Forwarded implements Receiver {
  readonly request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #delivery: Delivery
  #controller: Controller | undefined
  #timer: NodeJS.Timeout | undefined
  #hasLeft = false
  #isDone = false
  /** What is given to Fastify to read, where it reads. */
  #stream: Readable | undefined
  #chunks: Buffer[] | undefined

  constructor (request: FastifyRequest, reply: FastifyReply, delivery: Delivery) {
    this.request = request
    this.#reply = reply
    this.#delivery = delivery
    reply.raw.on('close', () => {
      if (this.#isDone) return
      this.#hasLeft = true
      this.#controller?.abort(new Error('The client left'))
    })
  }

  start (body: PodBody): void {
    const startTimer = (): void => { this.#timer = setTimeout(stopByTime, timeoutMs, this) }
    if (body instanceof Readable) body.once('end', startTimer)
    else startTimer()
  }

  stop (): void {
    this.#controller?.abort(new Error('The pod did not answer in time'))
  }

  fail (statusCode: number): void {
    this.#isDone = true
    if (this.#delivery === 'raw') this.#reply.raw.writeHead(statusCode).end()
    else this.#reply.code(statusCode).send()
  }

  onRequestStart (controller: Controller): void {
    this.#controller = controller
    if (this.#hasLeft) controller.abort(new Error('The client left'))
  }

  onResponseStart (controller: Controller, statusCode: number, given: IncomingHttpHeaders): void {
    if (statusCode < 200) return
    clearTimeout(this.#timer)
    const headers = toClientHeaders(given)
    if (this.#delivery === 'raw') {
      this.#reply.raw.writeHead(statusCode, headers)
      return
    }
    this.#reply.code(statusCode)
    for (const name in headers) this.#reply.header(name, headers[name])
    if (this.#delivery === 'bytes' && Number(given['content-length'] ?? Infinity) <= heldBytes) this.#chunks = []
    else this.#reply.send(this.#stream = new Readable({ read: () => controller.resume(), highWaterMark: heldBytes }))
  }

  onResponseData (controller: Controller, chunk: Buffer): void {
    if (this.#chunks !== undefined) {
      this.#chunks.push(chunk)
    } else if (this.#stream !== undefined) {
      if (!this.#stream.push(chunk)) controller.pause()
    } else if (!this.#reply.raw.write(chunk)) {
      controller.pause()
      this.#reply.raw.once('drain', () => controller.resume())
    }
  }

  onResponseEnd (): void {
    this.#isDone = true
    if (this.#chunks !== undefined) this.#reply.send(this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks))
    else if (this.#stream !== undefined) this.#stream.push(null)
    else this.#reply.raw.end()
  }

  onResponseError (_controller: Controller | undefined, error: Error): void {
    clearTimeout(this.#timer)
    if (this.#stream !== undefined) this.#stream.destroy(error)
    else if (this.#reply.raw.headersSent) this.#reply.raw.destroy()
    else if (!this.#isDone) this.fail(502)
  }
}

function stopByTime (forwarded: Forwarded): void {
  forwarded.stop()
}
