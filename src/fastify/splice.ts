import { request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { pipeline } from 'node:stream'
import type { Duplex } from 'node:stream'
import { callBack } from './call-back.ts'
import type { Exchange, Route } from './exchange.ts'
import { toChangedHeaders, toPodHeaders } from './headers.ts'
import { classify } from './pod-failure.ts'
import type { PodFailure } from './pod-failure.ts'
import { locateFor } from './pod-url.ts'
import { isRefusal, refuse, toRefusal } from './refusal.ts'
import type { ProxyOptions, ProxyTarget } from './types.ts'
import { getWaitingClient } from './upgrade.ts'
import type { WaitingClient } from './upgrade.ts'
import { upstreamKey } from './upstream.ts'

const connectTimeoutMs = 1000
const tooSlow = new Error('The pod did not reply in time')

/** Resolves as for any request, then joins the sockets of client and pod; refusals are answered before the 101. */
export async function spliceUpgrade (exchange: Exchange, route: Route, options: ProxyOptions<never>): Promise<void> {
  const asker = getWaitingClient(exchange.request)
  if (asker === undefined) return exchange.refuse(refuse('PLT_COORDINATOR_UPGRADE_NOT_SUPPORTED'))
  try {
    const first = await route.resolve(exchange)
    if (isRefusal(first)) return exchange.refuse(first)
    const failure = await attempt(exchange, asker, route, first, options)
    if (failure === undefined) return
    // Once more, to another pod: nothing has reached the first.
    const second = failure.isUnreachable ? await route.resolve(exchange) : failure.refusal
    if (isRefusal(second) || second.memberId === first.memberId) return exchange.giveUp(first, failure.refusal, failure.error)
    const again = await attempt(exchange, asker, route, second, options)
    if (again !== undefined) exchange.giveUp(second, again.refusal, again.error)
  } catch (error) {
    exchange.refuse(toRefusal(error))
  }
}

async function attempt (exchange: Exchange, asker: WaitingClient, route: Route, target: ProxyTarget, options: ProxyOptions<never>): Promise<PodFailure & { error: Error } | undefined> {
  const where = locateFor(exchange.request, target.address, upstreamKey in exchange.request.server)
  if (isRefusal(where)) return { refusal: where, isUnreachable: false, isCut: false, error: new Error(where.message, { cause: where.cause }) }
  if (asker.socket.destroyed) return { refusal: refuse('PLT_COORDINATOR_CLIENT_GONE'), isUnreachable: false, isCut: false, error: new Error('The client left') }
  const error = await connect(exchange, asker, target, where, options)
  if (error === undefined) return undefined
  const failure = classify(error, error === tooSlow ? 'timeout' : undefined, asker.socket.destroyed)
  if (failure.isUnreachable) callBack(exchange.request, 'onUnreachable', () => route.onUnreachable(target))
  return { ...failure, error }
}

/** Asks one pod; resolves to the error that befell the connection, or to nothing once the client has its answer. */
function connect (exchange: Exchange, asker: WaitingClient, target: ProxyTarget, { origin, path }: { origin: string, path: string }, options: ProxyOptions<never>): Promise<Error | undefined> {
  const { request, reply } = exchange
  const duty = { ...toPodHeaders(request), connection: 'upgrade', upgrade: request.headers.upgrade }
  const headers = options.rewriteRequestHeaders === undefined ? duty : options.rewriteRequestHeaders(request as never, duty)
  const isTls = origin.startsWith('https:')
  return new Promise(resolve => {
    // A connection of its own: one that is kept alive does not connect, and belongs to the splice afterwards.
    const asked = (isTls ? httpsRequest : httpRequest)(origin, { agent: false, method: request.method, path, headers: { ...headers, host: new URL(origin).host } as never })
    let timer = setTimeout(() => asked.destroy(Object.assign(new Error('No connection'), { code: 'UND_ERR_CONNECT_TIMEOUT' })), connectTimeoutMs)
    const leave = (): void => { asked.destroy() }
    const answered = (error?: Error): void => {
      clearTimeout(timer)
      asker.socket.off('close', leave)
      resolve(error)
    }
    asker.socket.once('close', leave)
    asked.once('socket', socket => socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      if (options.requestTimeout !== undefined) timer = setTimeout(() => asked.destroy(tooSlow), options.requestTimeout)
    }))
    asked.once('error', answered)
    asked.once('upgrade', (answer, podSocket, podHead) => {
      exchange.tell(target.result ?? 'hit')
      reply.hijack()
      splice(asker, podSocket, podHead, answer)
      answered()
    })
    asked.once('response', answer => {
      // The pod declined: its answer is the client's, up to its end.
      let headers: IncomingHttpHeaders
      try {
        headers = toChangedHeaders(answer.headers, request, options.rewriteHeaders)
      } catch (cause) {
        answer.on('error', () => {}).destroy()
        exchange.refuse(refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause }), target)
        return answered()
      }
      exchange.tell(target.result ?? 'hit')
      reply.hijack()
      asker.takeOver()
      writeHead(asker.socket, answer, { ...headers, connection: 'close' })
      pipeline(answer, asker.socket, () => asker.socket.destroy())
      answered()
    })
    asked.end()
  })
}

function splice (asker: WaitingClient, podSocket: Duplex, podHead: Buffer, answer: IncomingMessage): void {
  const { socket } = asker
  const early = asker.takeOver()
  socket.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${rawLines(answer.rawHeaders)}\r\n`, 'latin1')
  if (podHead.length > 0) socket.write(podHead)
  if (early.length > 0) podSocket.write(early)
  podSocket.on('error', () => podSocket.destroy())
  // What was written is still sent: a pod's last words before it closes reach a slow client.
  podSocket.once('close', () => socket.end(() => socket.destroy()))
  socket.once('close', () => podSocket.destroy())
  socket.pipe(podSocket).pipe(socket)
}

function rawLines (rawHeaders: string[]): string {
  let lines = ''
  for (let at = 0; at < rawHeaders.length; at += 2) lines += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`
  return lines
}

function writeHead (socket: Duplex, { statusCode, statusMessage }: IncomingMessage, headers: IncomingHttpHeaders): void {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().flatMap(each => [name, each]))
  socket.write(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${rawLines(lines)}\r\n`, 'latin1')
}
