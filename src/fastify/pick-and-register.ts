import type { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { RouteGenericInterface } from 'fastify'
import { checkId } from '../options.ts'
import type { Registry } from '../registry.ts'
import { checkCallback, checkRegistry, isExpected } from './check-options.ts'
import type { Exchange } from './exchange.ts'
import { toBuffer } from './pod-body.ts'
import type { PodReply } from './pod-reply.ts'
import { handle } from './proxy.ts'
import { isRefusal, refuse } from './refusal.ts'
import type { AnyRoute, CreateReply, HelperHandler, HelperRequest, PickAndRegisterOptions } from './types.ts'

const defaultReplyLimit = 1024 * 1024
const largestJsonFactor = 16
const longestPauseMs = 60_000

/**
 * Makes a route handler that sends each create to a pod of the strategy's choice, and binds the id the pod gave to that pod before the
 * client hears of it.
 * Results: `spawned`, `unavailable` (no pod takes anything new: 503), `refused` (the pod began to drain, 503; or, with `ifBound: 'refuse'`,
 * the id is bound elsewhere, 409), `upstream_error` (passed on, and nothing was bound), and those every helper has.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function pickAndRegister<R extends RouteGenericInterface = AnyRoute> (registry: Registry, options: PickAndRegisterOptions<R>): HelperHandler<R> {
  const { registerIdFrom, expectedStatus, ifBound = 'add', replyLimit = defaultReplyLimit, unavailableMessage, refusedMessage } = options ?? {}
  checkRegistry(registry)
  checkCallback('registerIdFrom', registerIdFrom)

  return handle(options, {
    async resolve () {
      const picked = await registry.pickMember()
      if (picked === null) return refuse('PLT_COORDINATOR_NO_PODS', { error: unavailableMessage })
      return { memberId: picked.memberId, address: picked.address, result: 'spawned' }
    },
    onUnreachable: ({ memberId }) => registry.reportUnreachable(memberId),
    async onReply (exchange, target, podReply) {
      if (!isExpected(podReply.statusCode, expectedStatus, status => status >= 200 && status <= 299)) return passOn(exchange, podReply, podReply.stream)
      if (String(podReply.headers['content-type']).startsWith('text/event-stream')) return passOn(exchange, podReply, podReply.stream, 'the reply is an event stream')
      // The client's leaving does not stop it, so something has to.
      const body = await readUpTo(podReply.stream, replyLimit, options.idleTimeout ?? longestPauseMs)
      if (body === null) return passOn(exchange, podReply, podReply.stream, 'the reply is larger than replyLimit')
      const { id, problem } = findId(exchange.request as HelperRequest<R>, podReply, body)
      if (id === undefined) return passOn(exchange, podReply, body, problem)
      const status = await registry.bindPod(id, target.memberId, { ifBound })
      const where = { ...target, destinationId: id }
      if (status === 'refused') return exchange.replaceReply(refuse('PLT_COORDINATOR_POD_DRAINING', { error: refusedMessage }), where)
      if (status === 'taken') return exchange.replaceReply(refuse('PLT_COORDINATOR_ALREADY_BOUND', { error: refusedMessage }), where)
      exchange.tell('spawned')
      exchange.deliver(podReply, body)
    }
  })

  function findId (request: HelperRequest<R>, podReply: PodReply, body: Buffer): { id?: string, problem: string } {
    try {
      const { statusCode, headers } = podReply
      const json: unknown = JSON.parse(decode(body, String(headers['content-encoding'] ?? 'identity'), replyLimit * largestJsonFactor).toString('utf8'))
      const id = registerIdFrom(json as never, { statusCode, headers, request } satisfies CreateReply<R>)
      // A number past 2^53 was rounded when it was parsed: its text would name another destination.
      if (typeof id === 'number' && Number.isSafeInteger(id)) return { id: String(id), problem: '' }
      checkId('destinationId', id)
      return { id, problem: '' }
    } catch (error) {
      request.log.warn({ code: 'PLT_COORDINATOR_CALLBACK_FAILED', err: error }, 'The id of a created destination could not be read')
      return { problem: 'the reply is not JSON, or registerIdFrom found no id in it' }
    }
  }
}

function passOn (exchange: Exchange, podReply: PodReply, body: Buffer | Readable, problem?: string): void {
  if (problem !== undefined) exchange.request.log.warn({ code: 'PLT_COORDINATOR_NOT_BOUND', problem }, 'A pod created something that was not bound')
  exchange.tell('upstream_error')
  exchange.stopIfLeft(podReply)
  exchange.deliver(podReply, body)
}

/** Reads a stream to its end, or says that it is longer than the limit: then it is as it was. */
function readUpTo (stream: Readable, limit: number, idleMs: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const done = (): void => {
      clearTimeout(timer)
      stream.off('data', onData).off('end', onEnd).off('error', onError)
    }
    const onData = (chunk: Buffer): void => {
      timer.refresh()
      chunks.push(chunk)
      length += chunk.length
      if (length <= limit) return
      done()
      stream.pause()
      stream.unshift(Buffer.concat(chunks))
      resolve(null)
    }
    const onEnd = (): void => {
      done()
      resolve(toBuffer(chunks))
    }
    const onError = (cause: unknown): void => {
      done()
      const { refusal } = cause as { refusal?: unknown }
      reject(isRefusal(refusal) ? refusal : refuse('PLT_COORDINATOR_POD_UNREACHABLE', { cause }))
    }
    const timer = setTimeout(() => stream.destroy(Object.assign(new Error('The pod stopped within its reply'), { refusal: refuse('PLT_COORDINATOR_POD_TIMEOUT') })), idleMs)
    stream.on('data', onData).on('end', onEnd).on('error', onError)
  })
}

function decode (body: Buffer, encoding: string, maxOutputLength: number): Buffer {
  switch (encoding.trim().toLowerCase()) {
    case 'gzip': case 'x-gzip': return gunzipSync(body, { maxOutputLength })
    case 'deflate': return inflateSync(body, { maxOutputLength })
    case 'br': return brotliDecompressSync(body, { maxOutputLength })
    default: return body
  }
}
