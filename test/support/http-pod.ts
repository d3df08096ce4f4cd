import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { atEnd } from './at-end.ts'
import { MessageReader, readValues } from './raw-http.ts'
import type { RawMessage } from './raw-http.ts'

/** A request as a pod got it. It is listed when its headers are there; its body grows as it comes. */
export interface PodRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly headers: IncomingHttpHeaders
  /** Values of a header, in order; none: empty. */
  values (name: string): string[]
  body: Buffer
  rawTrailers: readonly string[]
  /** The whole body came. */
  isWhole: boolean
  /** The coordinator closed the connection, or gave up the request, before the reply ended. */
  isCancelled: boolean
}

export type Answer = (response: ServerResponse, request: PodRequest, raw: IncomingMessage) => void

interface PodBase {
  readonly port: number
  readonly address: string
  /** Connections that were ever opened. */
  readonly connectionCount: number
  /** Connections open now. */
  readonly sockets: ReadonlySet<Socket>
  /** Stops listening and cuts every connection; the address refuses connections from here on. */
  close (): Promise<void>
}

export interface Pod extends PodBase {
  /** In the order they came. */
  readonly requests: PodRequest[]
  /** What is answered, once the whole request is there, where nothing else is scripted. */
  answer: Answer
  /** Answers for the next requests, one each, in order. */
  readonly next: Answer[]
  /** Called at the headers of each request, its body unread; returning true takes it over. */
  onHeaders: ((response: ServerResponse, request: PodRequest, raw: IncomingMessage) => boolean | undefined) | undefined
}

/** Starts a pod that records what it gets and answers as scripted: 200 with the text `ok` where nothing else is said. */
export async function startPod (t: TestContext, answer: Answer = response => { response.end('ok') }, host = '127.0.0.1'): Promise<Pod> {
  const server = createServer({ keepAliveTimeout: 60_000 }, (raw, response) => {
    const request: PodRequest = {
      method: raw.method as string,
      url: raw.url as string,
      rawHeaders: raw.rawHeaders,
      headers: raw.headers,
      values: name => readValues(raw.rawHeaders, name),
      body: Buffer.alloc(0),
      rawTrailers: [],
      isWhole: false,
      isCancelled: false
    }
    pod.requests.push(request)
    response.on('error', () => {})
    response.once('close', () => { request.isCancelled = !response.writableFinished })
    if (pod.onHeaders?.(response, request, raw) === true) return
    const chunks: Buffer[] = []
    raw.on('error', () => {})
    raw.on('data', chunk => {
      chunks.push(chunk)
      request.body = Buffer.concat(chunks)
    })
    raw.once('end', () => {
      request.rawTrailers = raw.rawTrailers
      request.isWhole = true
      const scripted = pod.next.shift() ?? pod.answer
      scripted(response, request, raw)
    })
  })
  server.on('checkExpectation', (raw, response) => { server.emit('request', raw, response) })
  const pod: Pod = Object.assign(await listen(t, server, host), { requests: [], answer, next: [], onHeaders: undefined })
  return pod
}

export interface RawPod extends PodBase {
  /** Requests in the order they came, read by their lengths. */
  readonly requests: RawMessage[]
}

/** Starts a pod for replies that node:http would not send: its answer is bytes, or a function that has the socket. */
export async function startRawPod (t: TestContext, answer: string | Buffer | ((socket: Socket, request: RawMessage) => void)): Promise<RawPod> {
  const server = createNetServer(socket => { serve(socket).catch(error => socket.destroy(error)) })
  const pod: RawPod = Object.assign(await listen(t, server, '127.0.0.1'), { requests: [] })
  return pod

  async function serve (socket: Socket): Promise<void> {
    const reader = new MessageReader(socket)
    for (let head = await reader.readHead(); head !== undefined; head = await reader.readHead()) {
      const request = await reader.readBody(head, 'none')
      pod.requests.push(request)
      if (typeof answer === 'function') answer(socket, request)
      else socket.write(typeof answer === 'string' ? Buffer.from(answer, 'latin1') : answer)
    }
  }
}

async function listen (t: TestContext, server: Server, host: string): Promise<PodBase> {
  const sockets = new Set<Socket>()
  let connectionCount = 0
  server.on('connection', (socket: Socket) => {
    connectionCount++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const close = (): Promise<void> => new Promise(resolve => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })
  atEnd(t, close)
  const base: Omit<PodBase, 'connectionCount'> = { port, address: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, sockets, close }
  return Object.defineProperty(base, 'connectionCount', { get: () => connectionCount, enumerable: false }) as PodBase
}
