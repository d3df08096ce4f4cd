import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { FastifyInstance, InjectOptions } from 'fastify'
import pg from 'pg'
import { Registry } from '@platformatic/coordinator'
import { storageCoordinatorPlugin } from '../../../examples/storage-db/src/coordinator-plugin.ts'
import { listeningAddress } from '../../../examples/storage-db/src/lifecycle.ts'
import { podPlugin } from '../../../examples/storage-db/src/pod-plugin.ts'
import type { Pod } from '../../../examples/storage-db/src/pod-plugin.ts'
import { readCoordinatorSettings, readPodSettings } from '../../../examples/storage-db/src/settings.ts'
import { Api } from '../../../examples/storage-db/smoke/api.ts'
import { toSchemaName } from '../../../examples/storage-db/src/schema-name.ts'
import { maxBodyBytes, maxParamLength } from '../../../examples/storage-db/src/values.ts'
import { atClose } from '../../support/closing.ts'
import { removeKeys } from '../../support/remove-keys.ts'
import { dropSchemas } from '../../support/storage.ts'

type Environment = Readonly<Record<string, string | number>>

/** A pod in this process, registered and listening. */
export interface RunningPod extends Pod {
  readonly app: FastifyInstance
  readonly memberId: string
  /** How often it was told that it is superseded. */
  readonly supersededCount: () => number
  /** A request to this pod itself, past any coordinator. */
  readonly send: (method: InjectOptions['method'], path: string, body?: unknown) => Promise<Answer>
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what came, to be compared
  readonly body: any
}

/** Pods and coordinators of one test on prefixes of their own, all gone after it. */
export class Scene {
  readonly #t: TestContext
  readonly keyPrefix: string
  readonly schemaPrefix: string
  readonly redisUrl: string
  readonly pgUrl: string
  /** For looking at what is stored, past everything. */
  readonly database: pg.Pool
  readonly registry: Registry

  /** @param urls of services of the test's own, in place of those of the run */
  constructor (t: TestContext, urls: { redisUrl?: string, pgUrl?: string } = {}) {
    const name = randomBytes(5).toString('hex')
    const { redisUrl = requireUrl('REDIS_URL'), pgUrl = requireUrl('PG_URL') } = urls
    this.#t = t
    this.keyPrefix = `storage-db-test-${name}`
    this.schemaPrefix = `st_${name}`
    this.redisUrl = redisUrl
    this.pgUrl = pgUrl
    const database = new pg.Pool({ connectionString: pgUrl, max: 4, connectionTimeoutMillis: 5000 })
    database.on('error', () => {})
    this.database = database
    atClose(t, () => removeKeys(redisUrl, this.keyPrefix))
    atClose(t, async () => {
      await dropSchemas(database, this.schemaPrefix)
      await database.end()
    })
    this.registry = new Registry({ redis: redisUrl, keyPrefix: this.keyPrefix, memberIndex: true, cache: false })
    atClose(t, () => this.registry.close())
  }

  /** Settings of a pod with short times. */
  environment (memberId: string, env: Environment = {}): Record<string, string> {
    const all = {
      REDIS_URL: this.redisUrl,
      PG_URL: this.pgUrl,
      KEY_PREFIX: this.keyPrefix,
      SCHEMA_PREFIX: this.schemaPrefix,
      MEMBER_ID: memberId,
      PORT: 0,
      TTL: 5,
      HEARTBEAT: 300,
      CACHE_TTL: 100,
      LOG_LEVEL: 'silent',
      ...env
    }
    return Object.fromEntries(Object.entries(all).map(([key, value]) => [key, String(value)]))
  }

  async startPod (memberId = 'pod-1', env: Environment = {}): Promise<RunningPod> {
    const settings = readPodSettings(this.environment(memberId, env))
    let superseded = 0
    const app = Fastify({ logger: { level: settings.logLevel, stream: process.stderr }, bodyLimit: maxBodyBytes, routerOptions: { maxParamLength }, forceCloseConnections: true })
    await app.register(podPlugin, { settings, onSuperseded: () => { superseded++ } })
    atClose(this.#t, async () => {
      await app.pod.transactions.endAll()
      await app.close()
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    await app.pod.membership.join(listeningAddress(app))
    return {
      ...app.pod,
      app,
      memberId,
      supersededCount: () => superseded,
      send: (method, path, body) => inject(app, method, path, body)
    }
  }

  async startCoordinator (env: Environment = {}): Promise<{ url: string, send: RunningPod['send'] }> {
    const settings = readCoordinatorSettings(this.environment('none', env))
    const app = Fastify({ logger: { level: settings.logLevel, stream: process.stderr }, routerOptions: { maxParamLength }, forceCloseConnections: true })
    await app.register(storageCoordinatorPlugin, { settings })
    atClose(this.#t, () => app.close())
    await app.listen({ port: 0, host: '127.0.0.1' })
    const url = listeningAddress(app)
    const api = new Api(url)
    atClose(this.#t, () => api.close())
    // Over a connection: inject() tidies a path up, `/tenants/%2E%2E` would never arrive.
    return { url, send: (method, path, body) => api.send(String(method), path, body) }
  }

  /** The schema of a tenant, fit to be used in a statement: it holds letters, digits and underscores alone. */
  schemaOf (tenantId: string): string {
    return toSchemaName(this.schemaPrefix, tenantId)
  }

  /** How many connections of a pod PostgreSQL has, by their state. */
  async countConnections (memberId: string, condition = 'true'): Promise<number> {
    const { rows } = await this.database.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database() AND ${condition}`, [`storage-db ${memberId}`])
    return rows[0].count
  }

  /** Breaks connections of a pod off; resolves to how many. */
  async breakConnections (memberId: string, condition = 'true'): Promise<number> {
    const { rows } = await this.database.query(
      `SELECT pg_terminate_backend(pid) AS done FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database() AND ${condition}`, [`storage-db ${memberId}`])
    return rows.filter(row => row.done).length
  }

  /** Ids of the live pods a tenant is bound to. */
  async boundTo (tenantId: string): Promise<string[]> {
    return (await this.registry.readBinding(tenantId)).filter(pod => pod.isLive).map(pod => pod.memberId)
  }
}

async function inject (app: FastifyInstance, method: InjectOptions['method'], path: string, body?: unknown): Promise<Answer> {
  const payload = typeof body === 'string' ? { payload: body, headers: { 'content-type': 'application/json' } } : body === undefined ? {} : { payload: body as object }
  const reply = await app.inject({ method, url: path, ...payload } as InjectOptions)
  return { status: reply.statusCode, headers: reply.headers, body: reply.body === '' ? undefined : reply.json() }
}

function requireUrl (name: string): string {
  const url = process.env[name]
  if (!url) throw new Error(`${name} is not set: npm run test:e2e does so`)
  return url
}

/** Promise.withResolvers, which Node.js 20 does not have. */
export function withResolvers<T> (): { promise: Promise<T>, resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>(_resolve => { resolve = _resolve })
  return { promise, resolve }
}
