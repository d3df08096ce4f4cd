import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import type { ClientOptions } from 'ws'
import { atEnd } from './at-end.ts'
import type { HttpScene } from './http-scene.ts'

/** A pod that takes WebSockets and echoes every message. */
export interface SocketPod {
  readonly port: number
  readonly address: string
  readonly server: Server
  /** Upgrade requests, in the order they came. */
  readonly upgrades: IncomingMessage[]
  /** WebSockets open now, as the pod sees them. */
  readonly open: ReadonlySet<WebSocket>
  /** Ends it as a crash of the process would; `reset`: as one of the machine, with which connections are reset. */
  die (how?: 'reset'): Promise<void>
}

/** @param decline takes an upgrade over; the others are accepted */
export async function startSocketPod (t: TestContext, decline?: (raw: IncomingMessage, socket: Duplex, head: Buffer) => boolean | undefined): Promise<SocketPod> {
  const server = createServer((_raw, response) => { response.end('no upgrade') })
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: protocols => [...protocols].at(-1) ?? false })
  const upgrades: IncomingMessage[] = []
  const connections = new Set<Socket>()
  server.on('connection', socket => {
    connections.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => connections.delete(socket))
  })
  server.on('upgrade', (raw, socket, head) => {
    upgrades.push(raw)
    if (decline?.(raw, socket, head) === true) return
    sockets.handleUpgrade(raw, socket, head, webSocket => {
      webSocket.on('error', () => {})
      webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary }))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const die = (how?: 'reset'): Promise<void> => new Promise(resolve => {
    server.close(() => resolve())
    for (const socket of connections) {
      if (how === 'reset') socket.resetAndDestroy()
      else socket.destroy()
    }
  })
  atEnd(t, () => die())
  const { port } = server.address() as AddressInfo
  return { port, address: `http://127.0.0.1:${port}`, server, upgrades, open: sockets.clients, die }
}

/** What became of an attempt to open a WebSocket. */
export interface Opened {
  readonly socket: WebSocket
  /** Reply to the upgrade when it was not accepted. */
  readonly refused: { statusCode: number, headers: IncomingMessage['headers'], body: string } | undefined
  /** Resolves with the code when it is closed. */
  readonly closed: Promise<number>
}

/** Opens a WebSocket to the application, or reads what it was refused with. */
export async function openSocket (t: TestContext, scene: HttpScene, path: string, protocols: string[] = [], options: ClientOptions = {}): Promise<Opened> {
  const { port } = await scene.listen()
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, options)
  atEnd(t, () => { socket.terminate() })
  const closed = new Promise<number>(resolve => socket.once('close', resolve))
  return await new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.once('open', () => resolve({ socket, refused: undefined, closed }))
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.once('close', () => {
        resolve({ socket, refused: { statusCode: response.statusCode as number, headers: response.headers, body: Buffer.concat(chunks).toString() }, closed })
      })
    })
  })
}

/** Sends a message and waits for the next. */
export async function exchange (socket: WebSocket, message: string | Buffer): Promise<Buffer> {
  const answer = new Promise<Buffer>(resolve => socket.once('message', data => resolve(data as Buffer)))
  socket.send(message)
  return await answer
}
