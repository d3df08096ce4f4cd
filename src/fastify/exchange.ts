import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { CoordinatorError } from '../errors.ts'
import { callBack, endSafely } from './call-back.ts'
import { toChangedHeaders, toSentHeaders } from './headers.ts'
import { takePodBody } from './pod-body.ts'
import type { PodBody } from './pod-body.ts'
import { classify } from './pod-failure.ts'
import { cutWhenIdle, deliver, deliverBytes, discard, isFinished, passInformation } from './pod-reply.ts'
import type { PodReply } from './pod-reply.ts'
import { locateFor } from './pod-url.ts'
import { isRefusal, refuse, sendRefusal, toRefusal } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { HelperResult, ProxyOptions, ProxyTarget } from './types.ts'
import { Sending, sendingKey, upstreamKey } from './upstream.ts'
import type { Information, SendingOwner } from './upstream.ts'

/** What a helper does with the requests of a route: where they go, and what is done with the pod's reply. */
export interface Route {
  /** Finds the pod. Asked again, once, when the first could not be reached. */
  resolve (exchange: Exchange): ProxyTarget | Refusal | Promise<ProxyTarget | Refusal>
  /** Told of a pod that nothing could be sent to. */
  onUnreachable (target: ProxyTarget): void
  /** Does a helper's work on the reply; tells the result and delivers the reply, or refuses. Absent: the reply is passed on. */
  onReply?: ((exchange: Exchange, target: ProxyTarget, reply: PodReply) => Promise<void>) | undefined
}

const neverAgain = (): null => null
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** One request on its way through a helper: told once, answered once, sent twice at most. */
export class Exchange implements SendingOwner {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  destinationId: string | undefined // once it is known, for the log
  readonly #options: ProxyOptions<never>
  readonly #route: Route
  #body: PodBody
  #sendings = 0
  #startedAt = 0
  /** True once the pod has said anything: then nothing is sent again. */
  #hasBegun = false
  /** Set when a callback failed where nothing could be thrown. */
  #broken: Refusal | undefined
  /** Headers of the pod's reply that stand on the client's. */
  #copied: string[] = []
  /** Headers that the application had set before. */
  #own: Record<string, unknown> = {}
  #hasLeft = false
  #isTold = false
  #isAnswered = false
  /** The sending that the client's leaving stops; none while a helper works on the reply. */
  #sending: Sending | undefined

  constructor (request: FastifyRequest, reply: FastifyReply, options: ProxyOptions<never>, route: Route) {
    this.request = request
    this.reply = reply
    this.#options = options
    this.#route = route
    reply.raw.on('close', () => {
      if (isFinished(reply)) return
      this.#hasLeft = true
      this.#sending?.stop('left')
    })
  }

  get hasLeft (): boolean {
    return this.#hasLeft || this.reply.raw.destroyed
  }

  start (): void {
    try {
      const target = this.#route.resolve(this)
      if (target instanceof Promise) target.then(target => this.#begin(target)).catch((error: unknown) => this.#refuseLate(error))
      else this.#begin(target)
    } catch (error) {
      this.refuse(toRefusal(error))
    }
  }

  #begin (target: ProxyTarget | Refusal): void {
    try {
      if (isRefusal(target)) return this.refuse(target)
      const body = takePodBody(this.request)
      if (body instanceof Promise) return this.#beginWith(target, body)
      this.#send(target, body)
    } catch (error) {
      this.refuse(toRefusal(error))
    }
  }

  #beginWith (target: ProxyTarget, pending: Promise<PodBody>): void {
    pending.then(body => this.#send(target, body)).catch((error: unknown) => this.#refuseLate(error))
  }

  #refuseLate (error: unknown): void {
    endSafely(this.reply, () => this.refuse(toRefusal(error)))
  }

  /** Tells the result, the first time it is called. */
  tell (result: HelperResult): void {
    if (this.#isTold) return
    this.#isTold = true
    const { onResult } = this.#options
    if (onResult !== undefined) callBack(this.request, 'onResult', () => onResult(result, this.request as never))
  }

  /** Answers in place of a pod. */
  refuse (refusal: Refusal, target: Partial<ProxyTarget> = { destinationId: this.destinationId }): void {
    const isGone = this.hasLeft
    this.tell(isGone ? 'aborted' : refusal.result)
    if (this.#isAnswered) return
    this.#isAnswered = true
    sendRefusal(this.reply, isGone ? refuse('PLT_COORDINATOR_CLIENT_GONE', { cause: refusal.cause }) : refusal, target)
  }

  /** Passes the pod's reply on, its bytes where they were read already. The pod's stream is read, or destroyed, from here on. */
  deliver (podReply: PodReply, body: Buffer | Readable = podReply.stream): void {
    if (this.#isAnswered) return discard(podReply)
    this.#isAnswered = true
    if (Buffer.isBuffer(body)) deliverBytes(this.reply, podReply, body)
    else deliver(this.reply, podReply, body)
  }

  /** After a helper's work on a reply, during which the client's leaving does not stop the pod: it does again, from here on. */
  stopIfLeft ({ sending }: PodReply): void {
    this.#sending = sending
    if (this.hasLeft) sending.stop('left')
  }

  #send (target: ProxyTarget, body: PodBody): void {
    this.#body = body
    if (this.hasLeft) return this.refuse(refuse('PLT_COORDINATOR_CLIENT_GONE'), target)
    const { request, reply } = this
    const isExact = upstreamKey in request.server
    const where = locateFor(request, target.address, isExact)
    if (isRefusal(where)) return this.refuse(where, target)
    this.#sendings++
    const { requestTimeout, rewriteRequestHeaders } = this.#options
    if (typeof reply.from !== 'function') throw new CoordinatorError('PLT_COORDINATOR_INVALID_OPTION', 'Register the coordinator plugin, or @fastify/reply-from, before the routes of the helpers')
    const sending = this.#sending = new Sending(this, target, where.path, body)
    if (requestTimeout !== undefined) sending.limitTime(this.#timeLeft(requestTimeout))
    if (this.#route.onReply !== undefined) this.#own = reply.getHeaders()
    const options: Parameters<FastifyReply['from']>[1] & object = {
      retryDelay: neverAgain,
      rewriteRequestHeaders: (_request, { host }) => {
        const headers: IncomingHttpHeaders & { [sendingKey]?: Sending } = toSentHeaders(request, body, host, rewriteRequestHeaders)
        headers[sendingKey] = sending
        return headers
      },
      rewriteHeaders: headers => this.#changeHeaders(headers as IncomingHttpHeaders),
      onError: (_reply, { error }) => sending.fail(error),
      onResponse: (_request, _reply, res) => this.#receive(sending, res as unknown as PodReply)
    }
    // Our sender takes the body from the sending; elsewhere reply-from passes on a stream by itself.
    if (isExact || body === undefined) options.body = null
    else if (body instanceof Readable) request.body = body
    else {
      options.body = body
      options.contentType = request.headers['content-type'] || 'application/octet-stream'
    }
    try {
      reply.from(isExact ? where.root : where.origin + where.path, options)
    } catch (error) { // of a callback, or a path that reply-from refuses
      sending.stopTimer()
      throw error
    }
  }

  #changeHeaders (headers: IncomingHttpHeaders): IncomingHttpHeaders {
    try {
      const passed = toChangedHeaders(headers, this.request, this.#options.rewriteHeaders)
      if (this.#route.onReply !== undefined) this.#copied = Object.keys(passed)
      return passed
    } catch (cause) { // undici, which calls this, would swallow it
      this.#broken = refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause })
      return {}
    }
  }

  /** Of `requestTimeout`, which both sendings share: what is sent again has a body that was read, and starts at once. */
  #timeLeft (requestTimeout: number): number {
    const now = performance.now()
    if (this.#sendings === 1) this.#startedAt = now
    return Math.max(1, requestTimeout - (now - this.#startedAt))
  }

  inform (info: Information): void {
    this.#hasBegun = true
    passInformation(this.reply, info)
  }

  #receive (sending: Sending, { statusCode, headers, stream }: PodReply): void {
    sending.replied()
    const { target } = sending
    const { idleTimeout } = this.#options
    const podReply: PodReply = { statusCode, headers, stream: idleTimeout === undefined ? stream : cutWhenIdle(stream, idleTimeout), sending }
    const { onReply } = this.#route
    if (this.#isAnswered || this.#broken !== undefined) {
      discard(podReply)
      return this.#broken && this.refuse(this.#broken, target)
    }
    if (onReply === undefined) {
      this.tell(target.result ?? 'hit')
      return this.deliver(podReply)
    }
    this.#sending = undefined
    onReply(this, target, podReply).catch(error => {
      discard(podReply)
      this.replaceReply(toRefusal(error), target)
    })
  }

  /** Answers in the place of a pod's reply, whose headers reply-from has copied over the application's. */
  replaceReply (refusal: Refusal, target: ProxyTarget): void {
    for (const name of this.#copied) this.reply.removeHeader(name)
    this.reply.headers(this.#own as Record<string, string>)
    this.refuse(refusal, target)
  }

  fail ({ target, stoppedBy }: Sending, error: Error): void {
    if (this.#isAnswered) return
    const failure = classify(error, stoppedBy, this.hasLeft)
    if (failure.isUnreachable) callBack(this.request, 'onUnreachable', () => this.#route.onUnreachable(target))
    const isReplayable = !this.#hasBegun && !(this.#body instanceof Readable) && (failure.isUnreachable || (failure.isCut && safeMethods.has(this.request.method)))
    if (!isReplayable || this.#sendings > 1) return this.giveUp(target, failure.refusal, error)
    this.#replay(target, failure.refusal, error, failure.isUnreachable).catch((error: unknown) => this.refuse(toRefusal(error), target))
  }

  /** Sends once more: to another pod when nothing could be sent, to any when a reply that changes nothing was cut. */
  async #replay (target: ProxyTarget, refusal: Refusal, error: Error, needsOther: boolean): Promise<void> {
    const next = await this.#route.resolve(this)
    if (isRefusal(next)) return this.giveUp(target, refusal, error)
    if (needsOther && next.memberId === target.memberId && next.address === target.address) return this.giveUp(target, refusal, error)
    this.#send(next, this.#body)
  }

  /** Answers for a pod that could not be asked, or gave no reply: by the route's `onError`, if it has one. */
  giveUp (target: ProxyTarget, refusal: Refusal, error: Error): void {
    const { onError } = this.#options
    if (onError === undefined || refusal.result === 'aborted') return this.refuse(refusal, target)
    this.tell(refusal.result)
    this.#isAnswered = true
    const answer = async (): Promise<unknown> => await onError(this.reply as never, { error, statusCode: refusal.statusCode, code: refusal.code })
    answer().catch((cause: unknown) => {
      if (!this.reply.sent) sendRefusal(this.reply, refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause }), target)
    })
  }
}
