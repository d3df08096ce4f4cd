import { Agent, request as startRequest } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'

export interface Reply {
  /** `refused`: no connection, so nothing was sent; `none`: sent, and no answer came in time or at all. */
  status: number | 'refused' | 'none'
  headers: IncomingHttpHeaders
  /** Parsed where it is JSON, else text. */
  body: unknown
  /** Moments of performance.now(). */
  sentAt: number
  endedAt: number
}

/** Sends HTTP requests with a time limit, never one of them twice. */
export class Client {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #timeoutMs: number

  constructor (timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** Never rejects. An object is sent as JSON. */
  async send (method: string, url: string, body?: string | object): Promise<Reply> {
    const sentAt = performance.now()
    const payload = typeof body === 'object' ? JSON.stringify(body) : body
    const headers = payload === undefined ? {} : { 'content-type': typeof body === 'object' ? 'application/json' : 'text/plain', 'content-length': Buffer.byteLength(payload) }
    return await new Promise(resolve => {
      const end = (status: Reply['status'], headers: IncomingHttpHeaders, body: unknown): void => {
        clearTimeout(timer)
        resolve({ status, headers, body, sentAt, endedAt: performance.now() })
      }
      const request = startRequest(url, { method, agent: this.#agent, headers })
      // Leaving is what a client does that waited long enough; the coordinator then stops its request to the pod.
      const timer = setTimeout(() => request.destroy(new Error(`No answer within ${this.#timeoutMs} ms`)), this.#timeoutMs)
      request.on('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED' ? 'refused' : 'none', {}, error.message))
      request.on('response', response => {
        let text = ''
        response.setEncoding('utf8').on('data', chunk => { text += chunk })
        response.on('error', error => end('none', {}, error.message))
        response.on('end', () => end(response.statusCode ?? 'none', response.headers, parse(text)))
      })
      request.end(payload)
    })
  }

  close (): void {
    this.#agent.destroy()
  }
}

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
