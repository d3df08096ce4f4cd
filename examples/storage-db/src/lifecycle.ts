// What the two processes have in common: one line of JSON when ready, a graceful stop on SIGTERM and SIGINT, and the exit codes:
// 0 after a stop, 1 when something failed, 2 for settings that cannot be used.

import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { isCoordinatorError } from '@platformatic/coordinator'
import { SettingsError } from './settings.ts'

/** A process that is up. */
export interface Running {
  /** Printed when ready. */
  readonly announcement: { readonly address: string, readonly memberId?: string }
  /** Ends all work. Called once. */
  stop (): Promise<void>
  /** Milliseconds after which a stop that has not come to its end is cut short. */
  readonly stopTimeout: number
}

/**
 * Runs a process to its end.
 * @param start resolves when the process is ready; it may call `askToStop` at any time, as a signal does
 */
export function runProcess (start: (askToStop: () => void) => Promise<Running>): void {
  let running: Running | undefined
  let isStopping = false
  let isAsked = false

  const stop = async ({ stop, stopTimeout }: Running): Promise<void> => {
    if (isStopping) return // a second signal changes nothing: for one Ctrl-C the terminal and a parent may both send it
    isStopping = true
    setTimeout(() => fail(new Error(`The stop did not end within ${stopTimeout} ms`)), stopTimeout)
    await stop()
    process.exit(0)
  }
  const askToStop = (): void => {
    isAsked = true // during the start: as soon as there is something to stop
    if (running !== undefined) stop(running).catch(fail)
  }

  process.on('SIGTERM', askToStop)
  process.on('SIGINT', askToStop)
  // A parent that forked this process and is gone cannot end it any more.
  if (process.connected) process.on('disconnect', askToStop)

  start(askToStop).then(async started => {
    running = started
    if (isAsked) await stop(started)
    else process.stdout.write(`${JSON.stringify({ ready: true, ...started.announcement })}\n`)
  }).catch(fail)
}

function fail (error: unknown): never {
  const isSettings = error instanceof SettingsError || isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION')
  process.stderr.write(`${describe(error)}\n`)
  process.exit(isSettings ? 2 : 1)
}

/** An error with a code says what is wrong, and its causes why; of any other the stack is wanted. */
function describe (error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!(error instanceof SettingsError) && !('code' in error)) return error.stack ?? error.message
  // An attempt at each address of a name fails for itself.
  const causes = error instanceof AggregateError ? error.errors : error.cause === undefined ? [] : [error.cause]
  const reasons = causes.map(cause => cause instanceof Error && !('code' in cause) ? cause.message : describe(cause))
  return [error.message, ...new Set(reasons)].filter(text => text !== '').join(': ')
}

/** Milliseconds that requests under way get when a process stops: longer than any statement, shorter than a client that never ends its upload. */
const lastRequestsTime = 10_000

/**
 * Stops listening, and resolves when the requests under way have been answered. Needs an application made with
 * `return503OnClosing: false`: what still comes on an open connection is served.
 */
export async function closeHttp (app: FastifyInstance): Promise<void> {
  // A connection that was in use when the close began would stay open, with nothing on it, until its keep-alive timeout. And node takes for
  // idle only what has had a request: one that was opened ahead, or whose request was given up before it was sent, would stay as well.
  const sweep = setInterval(() => {
    app.server.closeIdleConnections()
    for (const socket of unused.get(app) ?? []) socket.destroy()
  }, 50)
  const cut = setTimeout(() => app.server.closeAllConnections(), lastRequestsTime)
  try {
    await app.close()
  } finally {
    clearInterval(sweep)
    clearTimeout(cut)
  }
}

const unused = new WeakMap<FastifyInstance, Set<Socket>>()

/** Keeps count of the connections on which no request has come yet, for `closeHttp`. Call it before the application listens. */
export function watchConnections (app: FastifyInstance): void {
  const sockets = new Set<Socket>()
  unused.set(app, sockets)
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.server.on('request', ({ socket }: IncomingMessage) => sockets.delete(socket))
}

/** The URL of an application that listens on TCP. */
export function listeningAddress (app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
