import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { atEnd } from './at-end.ts'

/** The first line and the headers of a message, as they came. */
export interface Head {
  /** Method, or version of the protocol. */
  readonly words: readonly string[]
  /** Names and values in turn, as node:http has them. */
  readonly rawHeaders: readonly string[]
}

/** A message as it came over a socket. */
export interface RawMessage extends Head {
  /** Values of a header, in order; none: empty. */
  values (name: string): string[]
  /** Decoded from chunks. */
  readonly body: Buffer
  /** Sizes of its chunks; undefined where it was not sent in chunks. */
  readonly chunkSizes: readonly number[] | undefined
  readonly rawTrailers: readonly string[]
  /** False when the connection ended before the message did. */
  readonly isComplete: boolean
}

export interface RawReply extends RawMessage {
  readonly statusCode: number
  /** The 1xx replies before it. */
  readonly information: readonly (Head & { statusCode: number })[]
}

/** Reads messages from a socket one after another. */
export class MessageReader {
  readonly socket: Socket
  /** All that came and was not taken yet. */
  bytes = Buffer.alloc(0)
  isEnded = false
  #wake: (() => void) | undefined

  constructor (socket: Socket) {
    this.socket = socket
    const end = (): void => {
      this.isEnded = true
      this.#wake?.()
    }
    socket.on('data', chunk => {
      this.bytes = Buffer.concat([this.bytes, chunk])
      this.#wake?.()
    })
    socket.on('end', end).on('close', end).on('error', end)
  }

  /** Waits for more bytes; false when none will come. */
  async more (): Promise<boolean> {
    if (this.isEnded) return false
    const length = this.bytes.length
    await new Promise<void>(resolve => { this.#wake = resolve })
    return this.bytes.length > length || !this.isEnded
  }

  take (length: number): Buffer {
    const taken = this.bytes.subarray(0, length)
    this.bytes = this.bytes.subarray(length)
    return taken
  }

  /** Undefined when the connection ended before the line did. */
  async readLine (): Promise<string | undefined> {
    for (;;) {
      const end = this.bytes.indexOf('\r\n')
      if (end >= 0) return this.take(end + 2).subarray(0, end).toString('latin1')
      if (!await this.more()) return undefined
    }
  }

  async readHead (): Promise<Head | undefined> {
    const first = await this.readLine()
    if (first === undefined) return undefined
    return { words: first.split(' '), rawHeaders: await this.readFields() }
  }

  async readFields (): Promise<string[]> {
    const fields: string[] = []
    for (let line = await this.readLine(); line !== undefined && line !== ''; line = await this.readLine()) {
      const [, name, value] = /^([^:]*):\s*(.*)$/.exec(line) ?? []
      fields.push(name as string, value as string)
    }
    return fields
  }

  /** Reads what follows a head. @param rest what to do without a length: there is no body, or it lasts until the end */
  async readBody (head: Head, rest: 'none' | 'until end'): Promise<RawMessage> {
    const values = (name: string): string[] => readValues(head.rawHeaders, name)
    const message = { ...head, values, body: Buffer.alloc(0), chunkSizes: undefined, rawTrailers: [], isComplete: true }
    if (values('transfer-encoding').some(value => /chunked/i.test(value))) return { ...message, ...await this.#readChunks() }
    const length = values('content-length')[0]
    if (length === undefined && rest === 'none') return message
    await this.#has(Number(length ?? Infinity))
    const body = this.take(Math.min(this.bytes.length, Number(length ?? Infinity)))
    return { ...message, body, isComplete: length === undefined || body.length === Number(length) }
  }

  async #has (length: number): Promise<boolean> {
    while (this.bytes.length < length && await this.more());
    return this.bytes.length >= length
  }

  async #readChunks (): Promise<Pick<RawMessage, 'body' | 'chunkSizes' | 'rawTrailers' | 'isComplete'>> {
    const chunks: Buffer[] = []
    for (;;) {
      const line = await this.readLine()
      const size = Number.parseInt(line ?? '', 16)
      const hasAll = line !== undefined && !Number.isNaN(size) && (size === 0 || await this.#has(size + 2))
      const rawTrailers = hasAll && size === 0 ? await this.readFields() : []
      if (!hasAll || size === 0) return { body: Buffer.concat(chunks), chunkSizes: chunks.map(chunk => chunk.length), rawTrailers, isComplete: hasAll }
      chunks.push(this.take(size + 2).subarray(0, size))
    }
  }
}

/** A connection on which a test says exactly what it sends. */
export interface RawClient {
  readonly socket: Socket
  readonly reader: MessageReader
  write (bytes: string | Buffer): void
  /** Reads the next reply, 1xx replies in front of it included. @param method of the request, as HEAD has no body */
  readReply (method?: string): Promise<RawReply>
  /** Writes a request and reads its reply. */
  ask (bytes: string | Buffer): Promise<RawReply>
}

/** Opens a connection, which is destroyed after the test. Strings are written as latin-1. */
export async function openClient (t: TestContext, port: number): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1')
  atEnd(t, () => { socket.destroy() })
  const reader = new MessageReader(socket)
  await once(socket, 'connect')
  const client: RawClient = {
    socket,
    reader,
    write: bytes => { socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes) },
    async readReply (method) {
      const information: (Head & { statusCode: number })[] = []
      for (;;) {
        const head = await reader.readHead()
        if (head === undefined) throw new Error('The connection ended without a reply')
        const statusCode = Number(head.words[1])
        if (statusCode >= 200 || statusCode === 101) {
          const hasBody = method !== 'HEAD' && statusCode !== 204 && statusCode !== 304 && statusCode !== 101
          const message = await reader.readBody(hasBody ? head : { ...head, rawHeaders: [] }, hasBody ? 'until end' : 'none')
          return { ...message, rawHeaders: head.rawHeaders, values: name => readValues(head.rawHeaders, name), statusCode, information }
        }
        information.push({ ...head, statusCode })
      }
    },
    async ask (bytes) {
      client.write(bytes)
      return await client.readReply(/^\w+/.exec(bytes.toString('latin1'))?.[0])
    }
  }
  return client
}

/** The text of a request: `toRequest('PUT /x', { 'content-type': 'a/b' }, body)`; a body given gets its length, unless a header says more. */
export function toRequest (line: string, headers: Record<string, string | string[]> = {}, body?: string | Buffer): Buffer {
  const all = { host: 'app.test', ...headers }
  const names = Object.keys(all).map(name => name.toLowerCase())
  if (body !== undefined && !names.includes('content-length') && !names.includes('transfer-encoding')) Object.assign(all, { 'content-length': String(Buffer.byteLength(body)) })
  const fields = Object.entries(all).flatMap(([name, value]) => [value].flat().map(value => `${name}: ${value}\r\n`))
  return Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\n${fields.join('')}\r\n`, 'latin1'), Buffer.from(body ?? '')])
}

/** A body in chunks, with trailers. */
export function toChunks (chunks: readonly (string | Buffer)[], trailers: Record<string, string> = {}): Buffer {
  const parts = chunks.map(chunk => Buffer.concat([Buffer.from(`${Buffer.byteLength(chunk).toString(16)}\r\n`), Buffer.from(chunk), Buffer.from('\r\n')]))
  return Buffer.concat([...parts, Buffer.from(`0\r\n${Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)])
}

/** Values of a header in a list of names and values. */
export function readValues (rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name.toLowerCase())
}
