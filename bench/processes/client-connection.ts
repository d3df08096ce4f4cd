import { connect } from 'node:net'
import type { Socket } from 'node:net'

/** A kept connection for one request at a time. It reads of a reply what it needs to know where it ends, and that it is a success. */
export class ClientConnection {
  readonly #socket: Socket
  #waiting: { resolve: () => void, reject: (error: Error) => void } | undefined
  /** What has come of a head that is not whole yet. */
  #head: Buffer | undefined
  /** Bytes of the body that are still to come. */
  #left = 0

  private constructor (socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', chunk => this.#read(chunk))
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('The application closed the connection')))
  }

  static async open (port: number): Promise<ClientConnection> {
    const socket = connect({ port, host: '127.0.0.1' })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject)
    })
    return new ClientConnection(socket)
  }

  /** Sends a request and resolves when its reply has come. */
  exchange (request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(request)
    })
  }

  get isOpen (): boolean {
    return !this.#socket.destroyed
  }

  close (): void {
    this.#socket.destroy()
  }

  #read (chunk: Buffer): void {
    if (this.#left > 0) {
      this.#left -= chunk.length
    } else {
      const received = this.#head === undefined ? chunk : Buffer.concat([this.#head, chunk])
      const end = received.indexOf('\r\n\r\n')
      this.#head = end === -1 ? received : undefined
      if (end === -1) return
      const head = received.toString('latin1', 0, end)
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      if (!head.startsWith('HTTP/1.1 2') || length === undefined) return this.#fail(new Error(`An unexpected reply: ${received.toString('latin1', 0, 500)}`))
      this.#left = Number(length) - (received.length - end - 4)
    }
    if (this.#left > 0) return
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve()
  }

  #fail (error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = undefined
    this.#socket.destroy()
  }
}
