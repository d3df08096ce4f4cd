// The HTTP API as a client sees it. Over node:http, for fetch tidies a path up: `/tenants/%2E%2E` would never arrive.

import { Agent, request } from 'node:http'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON; undefined when there was no body. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what came, to be compared
  readonly body: any
}

export interface PodReport {
  readonly memberId: string
  readonly load: number
  readonly draining: boolean
  readonly tenants: readonly string[]
}

export class Api {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor (url: string) {
    this.#url = url
  }

  async send (method: string, path: string, body?: unknown): Promise<Reply> {
    const { hostname, port } = new URL(this.#url)
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    return await new Promise((resolve, reject) => {
      const headers = text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
      const sent = request({ agent: this.#agent, hostname: hostname.replace(/^\[|\]$/g, ''), port, method, path, headers, timeout: 20_000 }, response => {
        const chunks: Buffer[] = []
        response.on('data', chunk => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const received = Buffer.concat(chunks).toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: received === '' ? undefined : JSON.parse(received) })
        })
      })
      sent.on('timeout', () => sent.destroy(new Error(`No reply to ${method} ${path.slice(0, 60)} within 20 s`)))
      sent.on('error', reject)
      sent.end(text)
    })
  }

  async listPods (): Promise<PodReport[]> {
    return (await this.send('GET', '/pods')).body.pods
  }

  async create (tenantId: string): Promise<Reply> {
    return await this.send('POST', tenantPath(tenantId))
  }

  async drop (tenantId: string): Promise<Reply> {
    return await this.send('DELETE', tenantPath(tenantId))
  }

  async put (tenantId: string, key: string, value: string, encoding?: string): Promise<Reply> {
    return await this.send('PUT', keyPath(tenantId, key), { value, encoding })
  }

  async get (tenantId: string, key: string): Promise<Reply> {
    return await this.send('GET', keyPath(tenantId, key))
  }

  async remove (tenantId: string, key: string): Promise<Reply> {
    return await this.send('DELETE', keyPath(tenantId, key))
  }

  async list (tenantId: string, query = ''): Promise<Reply> {
    return await this.send('GET', `${tenantPath(tenantId)}/keys${query}`)
  }

  async begin (tenantId: string, body?: unknown): Promise<Reply> {
    return await this.send('POST', `${tenantPath(tenantId)}/transactions`, body)
  }

  async putIn (lockId: string, key: string, value: string): Promise<Reply> {
    return await this.send('PUT', `${lockPath(lockId)}/keys/${toSegment(key)}`, { value })
  }

  async getIn (lockId: string, key: string): Promise<Reply> {
    return await this.send('GET', `${lockPath(lockId)}/keys/${toSegment(key)}`)
  }

  async commit (lockId: string): Promise<Reply> {
    return await this.send('POST', `${lockPath(lockId)}/commit`)
  }

  async rollBack (lockId: string): Promise<Reply> {
    return await this.send('POST', `${lockPath(lockId)}/rollback`)
  }

  close (): void {
    this.#agent.destroy()
  }
}

/** One segment of a path. Dots too, or `..` would be more than a name to whatever stands between. */
function toSegment (text: string): string {
  return encodeURIComponent(text).replaceAll('.', '%2E')
}

function tenantPath (tenantId: string): string {
  return `/tenants/${toSegment(tenantId)}`
}

function keyPath (tenantId: string, key: string): string {
  return `${tenantPath(tenantId)}/keys/${toSegment(key)}`
}

function lockPath (lockId: string): string {
  return `/transactions/${toSegment(lockId)}`
}
