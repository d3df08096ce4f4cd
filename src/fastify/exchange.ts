import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { CoordinatorError } from '../errors.ts'
import { toChangedHeaders, toSentHeaders } from './headers.ts'
import { takePodBody, toBodyOption } from './pod-body.ts'
import type { PodBody } from './pod-body.ts'
import { classify } from './pod-failure.ts'
import { cutWhenIdle, deliver, discard, isFinished, passInformation } from './pod-reply.ts'
import type { PodReply } from './pod-reply.ts'
import { locateFor } from './pod-url.ts'
import { isRefusal, refuse, sendRefusal, toRefusal } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { HelperResult, ProxyOptions, ProxyTarget } from './types.ts'
import { startRequestTimer } from './request-timer.ts'
import { sendingKey, StopSignal, upstreamKey } from './upstream.ts'
import type { Sending } from './upstream.ts'

/** What a helper makes of a request: where it goes, and what is done with the pod's reply. */
export interface Route {
  /** Set once it is known, for the log. */
  destinationId?: string
  /** Finds the pod. Asked again, once, when the first could not be reached. */
  resolve (): Promise<ProxyTarget | Refusal>
  /** Told of a pod that nothing could be sent to. */
  onUnreachable (target: ProxyTarget): void
  /** Does a helper's work on the reply; tells the result and delivers the reply, or refuses. Absent: the reply is passed on. */
  onReply?: ((exchange: Exchange, target: ProxyTarget, reply: PodReply) => Promise<void>) | undefined
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** One request on its way through a helper: told once, answered once, sent twice at most. */
export class Exchange {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
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
  #heldAbort: ((reason: 'left' | 'timeout') => void) | undefined
  #abort: ((reason: 'left' | 'timeout') => void) | undefined

  constructor (request: FastifyRequest, reply: FastifyReply, options: ProxyOptions<never>, route: Route) {
    this.request = request
    this.reply = reply
    this.#options = options
    this.#route = route
    reply.raw.once('close', () => {
      if (isFinished(reply)) return
      this.#hasLeft = true
      this.#abort?.('left')
    })
  }

  get hasLeft (): boolean {
    return this.#hasLeft || this.reply.raw.destroyed
  }

  async start (): Promise<void> {
    try {
      const target = await this.#route.resolve()
      if (isRefusal(target)) return this.refuse(target)
      this.#body = await takePodBody(this.request)
      this.#send(target)
    } catch (error) {
      this.refuse(toRefusal(error))
    }
  }

  /** Tells the result, the first time it is called. */
  tell (result: HelperResult): void {
    if (this.#isTold) return
    this.#isTold = true
    this.callBack('onResult', () => this.#options.onResult?.(result, this.request as never))
  }

  /** Calls back the application; that it throws, or rejects, is logged and costs nothing else. */
  callBack (name: string, callback: () => unknown): void {
    const log = (error: unknown): void => this.request.log.warn({ code: 'PLT_COORDINATOR_CALLBACK_FAILED', err: error }, `${name} failed`)
    try {
      Promise.resolve(callback()).catch(log)
    } catch (error) {
      log(error)
    }
  }

  /** Answers in place of a pod. */
  refuse (refusal: Refusal, target: Partial<ProxyTarget> = this.#route): void {
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
    // As a stream even where it was read: to bytes Fastify would add a content-type.
    deliver(this.reply, podReply, Buffer.isBuffer(body) ? Readable.from([body], { objectMode: false }) : body)
  }

  /** After a helper's work on a reply, during which the client's leaving does not stop the pod: it does again, from here on. */
  stopIfLeft (): void {
    this.#abort = this.#heldAbort
    if (this.hasLeft) this.#abort?.('left')
  }

  #send (target: ProxyTarget): void {
    if (this.hasLeft) return this.refuse(refuse('PLT_COORDINATOR_CLIENT_GONE'), target)
    const where = locateFor(this.request, target.address)
    if (isRefusal(where)) return this.refuse(where, target)
    const { origin, path } = where
    this.#sendings++
    const { request, reply } = this
    const { requestTimeout, idleTimeout, rewriteHeaders, rewriteRequestHeaders } = this.#options
    const signal = new StopSignal()
    let stopped: 'left' | 'timeout' | undefined
    this.#abort = reason => {
      stopped ??= reason
      signal.abort()
    }
    if (typeof reply.from !== 'function') throw new CoordinatorError('PLT_COORDINATOR_INVALID_OPTION', 'Register the coordinator plugin, or @fastify/reply-from, before the routes of the helpers')
    const timer = startRequestTimer(this.#timeLeft(requestTimeout), this.#body, () => this.#abort?.('timeout'))
    const onError = (error: Error): void => {
      timer.stop()
      this.#fail(target, error, stopped)
    }
    const sending: Sending = { path, body: this.#body, signal, onError, onInfo: info => this.#inform(info) }
    const isExact = upstreamKey in request.server
    if (!isExact && this.#body instanceof Readable) request.body = this.#body
    if (this.#route.onReply !== undefined) this.#own = reply.getHeaders()

    const from: Parameters<FastifyReply['from']> = [isExact ? `${origin}/` : `${origin}${path}`, {
      retryDelay: () => null,
      ...toBodyOption(this.#body, request.headers['content-type'], isExact),
      rewriteRequestHeaders: (_request, { host }) => Object.assign(toSentHeaders(request, this.#body, host, rewriteRequestHeaders), { [sendingKey]: sending }),
      rewriteHeaders: headers => {
        try {
          const passed = toChangedHeaders(headers as IncomingHttpHeaders, request, rewriteHeaders)
          this.#copied = Object.keys(passed)
          return passed
        } catch (cause) { // undici, which calls this, would swallow it
          this.#broken = refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause })
          return {}
        }
      },
      onError: (_reply, { error }) => onError(error),
      onResponse: (_request, _reply, res) => {
        timer.stop()
        const podReply = res as unknown as PodReply
        const stream = idleTimeout === undefined ? podReply.stream : cutWhenIdle(podReply.stream, idleTimeout)
        this.#receive(target, { ...podReply, stream, sending })
      }
    }]
    try {
      reply.from(...from)
    } catch (error) { // of a callback, or a path that reply-from refuses
      timer.stop()
      throw error
    }
  }

  /** Of `requestTimeout`, which both sendings share: what is sent again has a body that was read, and starts at once. */
  #timeLeft (requestTimeout: number | undefined): number | undefined {
    const now = performance.now()
    if (this.#sendings === 1) this.#startedAt = now
    return requestTimeout && Math.max(1, requestTimeout - (now - this.#startedAt))
  }

  #inform (info: { statusCode: number, headers: IncomingHttpHeaders }): void {
    this.#hasBegun = true
    passInformation(this.reply, info)
  }

  #receive (target: ProxyTarget, podReply: PodReply): void {
    const { onReply } = this.#route
    if (this.#isAnswered || this.#broken !== undefined) {
      discard(podReply)
      return this.#broken && this.refuse(this.#broken, target)
    }
    if (onReply === undefined) {
      this.tell(target.result ?? 'hit')
      return this.deliver(podReply)
    }
    this.#heldAbort = this.#abort
    this.#abort = undefined
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

  #fail (target: ProxyTarget, error: Error, stopped: 'left' | 'timeout' | undefined): void {
    if (this.#isAnswered) return
    const failure = classify(error, stopped, this.hasLeft)
    if (failure.isUnreachable) this.callBack('onUnreachable', () => this.#route.onUnreachable(target))
    const isReplayable = !this.#hasBegun && !(this.#body instanceof Readable) && (failure.isUnreachable || (failure.isCut && safeMethods.has(this.request.method)))
    if (!isReplayable || this.#sendings > 1) return this.giveUp(target, failure.refusal, error)
    this.#replay(target, failure.refusal, error, failure.isUnreachable).catch((error: unknown) => this.refuse(toRefusal(error), target))
  }

  /** Sends once more: to another pod when nothing could be sent, to any when a reply that changes nothing was cut. */
  async #replay (target: ProxyTarget, refusal: Refusal, error: Error, needsOther: boolean): Promise<void> {
    const next = await this.#route.resolve()
    if (isRefusal(next)) return this.giveUp(target, refusal, error)
    if (needsOther && next.memberId === target.memberId && next.address === target.address) return this.giveUp(target, refusal, error)
    this.#send(next)
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
