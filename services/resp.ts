import { connect } from 'node:net'

/** Where a store listens. */
export interface StoreAddress {
  readonly host: string
  readonly port: number
}

/**
 * Sends one inline command over a new connection and gives the reply as text, without its type byte and length.
 * Raw RESP, so that starting a store needs nothing of src/ or of a client package. Null means: nobody there, an error reply, or
 * no reply within the deadline.
 */
export async function askStore (address: StoreAddress, command: 'PING' | 'INFO server', deadlineMs = 500): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(address)
    let received = ''
    const settle = (reply: string | null): void => {
      socket.destroy()
      resolve(reply)
    }
    socket.setTimeout(deadlineMs, () => settle(null))
    socket.setEncoding('utf8')
    socket.on('connect', () => socket.write(`${command}\r\n`))
    socket.on('error', () => settle(null))
    socket.on('close', () => settle(null))
    socket.on('data', (chunk: string) => {
      received += chunk
      const reply = readReply(received)
      if (reply !== undefined) settle(reply)
    })
  })
}

/** Tells whether something accepts connections at the address; for addresses that may speak TLS or want a password. */
export async function acceptsConnections (address: StoreAddress, deadlineMs = 2_000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const settle = (accepted: boolean): void => {
      socket.destroy()
      resolve(accepted)
    }
    socket.setTimeout(deadlineMs, () => settle(false))
    socket.on('connect', () => settle(true))
    socket.on('error', () => settle(false))
  })
}

/** Reads a simple string or a bulk string; undefined while it is incomplete, null for an error reply. */
function readReply (received: string): string | null | undefined {
  const lineEnd = received.indexOf('\r\n')
  if (lineEnd === -1) return undefined
  const line = received.slice(1, lineEnd)
  if (received[0] === '+') return line
  if (received[0] !== '$') return null
  // INFO is ASCII, so characters are bytes here.
  const body = received.slice(lineEnd + 2)
  return body.length < Number(line) ? undefined : body.slice(0, Number(line))
}
