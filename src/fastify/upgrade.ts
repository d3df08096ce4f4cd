import { ServerResponse } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { getTraits } from './exact-bodies.ts'

/** A client that asked for an upgrade and waits for the answer. */
export interface WaitingClient {
  readonly socket: Duplex
  /** Takes what the client has sent since, and leaves the socket to the caller. */
  takeOver (): Buffer
}

const upgradesKey = Symbol('coordinator.upgrades')
/** Paths of the helpers' routes, by server: scopes of one application share it. */
const servers = new WeakMap<object, { readonly patterns: RegExp[], isListening: boolean }>()
const waiting = new WeakMap<IncomingMessage, WaitingClient>()
// What a client may send before it has its answer; then it is not read any further.
const earlyBytes = 64 * 1024

/** Whether the client asks for another protocol on its connection. An offer of h2c, which clients make unasked, is passed over. */
export function isUpgrade ({ headers, raw }: FastifyRequest): boolean {
  if (waiting.has(raw)) return true
  return headers.upgrade !== undefined && headers.upgrade.toLowerCase() !== 'h2c' && /(^|,)\s*upgrade\s*(,|$)/i.test(headers.connection ?? '')
}

export function getWaitingClient (request: FastifyRequest): WaitingClient | undefined {
  return waiting.get(request.raw)
}

/** Lets WebSocket upgrades reach the routes on which a helper takes them, and ends them when the application closes. */
export function acceptUpgrades (app: FastifyInstance): void {
  if (app.hasDecorator(upgradesKey)) return
  app.decorate(upgradesKey, true)
  app.addHook('onRoute', route => {
    const traits = getTraits(route.handler)
    if (traits === undefined) return
    const state = servers.get(app.server) ?? { patterns: [], isListening: false }
    servers.set(app.server, state)
    state.patterns.push(toPattern(route.url)) // one that takes none answers 501
    if (!traits.takesUpgrades || state.isListening) return
    state.isListening = true
    listen(app, state.patterns)
  })
}

/** One listener a server, however many scopes of the application have such routes. */
function listen (app: FastifyInstance, patterns: readonly RegExp[]): void {
  const sockets = new Set<Duplex>()
  app.server.on('upgrade', (raw: IncomingMessage, socket: Duplex & { _httpMessage?: unknown }, head: Buffer) => {
    if (socket._httpMessage) return // somebody else's listener has answered
    const path = raw.url?.split('?', 1)[0] ?? ''
    if (raw.headers.upgrade?.toLowerCase() !== 'websocket' || !patterns.some(pattern => pattern.test(path))) return giveBack(app, raw, socket, head)
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    waiting.set(raw, waitFor(socket, head))
    // The request takes its way through the application's hooks as any other; what does not splice answers on the socket.
    const response = new ServerResponse(raw)
    response.shouldKeepAlive = false
    response.assignSocket(socket as never)
    socket.on('drain', () => response.emit('drain'))
    response.once('finish', () => socket.end())
    app.routing(raw, response)
  })
  app.addHook('preClose', done => {
    for (const socket of sockets) socket.destroy()
    done()
  })
}

/** Matches what the route matches, and a little more: parameters of any form, either case, a slash at the end. */
function toPattern (url: string): RegExp {
  const segments = url.replace(/\/$/, '').split('/').map(segment => {
    if (segment.includes('*')) return '.*'
    return segment.includes(':') ? '[^/]*' : segment.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${segments.join('/')}/?$`, 'i')
}

/** Reads on while the client waits: without reading nobody would notice that it left. */
function waitFor (socket: Duplex, head: Buffer): WaitingClient {
  const early = [head]
  let length = head.length
  const onData = (chunk: Buffer): void => {
    early.push(chunk)
    length += chunk.length
    if (length > earlyBytes) socket.pause()
  }
  const onEnd = (): void => { socket.destroy() }
  socket.on('data', onData).once('end', onEnd)
  return {
    socket,
    takeOver () {
      socket.off('data', onData).off('end', onEnd).pause()
      return Buffer.concat(early)
    }
  }
}

/** Serves a request with another offer as node does where nobody listens for upgrades: as if the offer had not been made. */
function giveBack (app: FastifyInstance, { method, url, httpVersion, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    let value = rawHeaders[at + 1] ?? ''
    if (/^(upgrade|http2-settings)$/i.test(name)) continue
    if (/^connection$/i.test(name)) value = value.split(',').map(token => token.trim()).filter(token => !/^(upgrade|http2-settings)$/i.test(token)).join(', ') || 'keep-alive'
    text += `${name}: ${value}\r\n`
  }
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
  // Node adds this one with every connection, and does not take it off at an upgrade.
  socket.removeAllListeners('timeout')
  app.server.emit(app.server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
}
