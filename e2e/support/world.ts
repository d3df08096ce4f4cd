import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { Registry } from '../../src/index.ts'
import type { BoundPod } from '../../src/index.ts'
import { startOwnStore } from '../../test/support/own-store.ts'
import type { OwnStore } from '../../test/support/own-store.ts'
import { Client } from './client.ts'
import type { Reply } from './client.ts'
import { atClose, tellErrorsHere } from './closing.ts'
import { compileStateful } from './compile.ts'
import { Landing } from './landing.ts'
import type { Load } from './load.ts'
import { startOwnPostgres } from './own-postgres.ts'
import type { OwnPostgres } from './own-postgres.ts'
import { startProcess } from './processes.ts'
import type { TestProcess } from './processes.ts'
import { removeKeys } from './remove-keys.ts'
import { connectDatabase, createNumberTables, dropSchemas, randomName } from './storage.ts'
import type { NumberTables } from './storage.ts'
import type { Traffic } from './traffic.ts'

/** The two kinds of pods that a scenario runs on. */
export type Kind = 'stateful' | 'storage-db'

export const kinds: readonly Kind[] = ['stateful', 'storage-db']

export interface WorldOptions {
  kind: Kind
  /** @defaultValue 3 */
  pods?: number
  /** @defaultValue 2 */
  coordinators?: number
  /** Seconds. @defaultValue 2 */
  ttl?: number
  /** Milliseconds. @defaultValue a fifth of the ttl */
  heartbeat?: number
  /** Milliseconds coordinators remember a pod. @defaultValue 500 */
  cacheTtl?: number
  /** Milliseconds a coordinator waits for a pod. @defaultValue 2000 */
  requestTimeout?: number
  /** Milliseconds a client waits for a coordinator; longer, so that it hears of that. @defaultValue requestTimeout + 1000 */
  clientTimeout?: number
  /** `random`: the control, stateful only. */
  router?: 'owner' | 'random'
  /** A Valkey, a PostgreSQL of this test alone, to stop and to freeze. */
  store?: 'shared' | 'own'
  postgres?: 'shared' | 'own'
  /** More environment for each pod, or each coordinator. */
  podEnv?: NodeJS.ProcessEnv
  coordinatorEnv?: NodeJS.ProcessEnv
}

const examples = fileURLToPath(new URL('../../examples/storage-db/dist/', import.meta.url))

/** Starts pods and coordinators as processes; all of it, keys and schemas included, is gone after the test. */
export async function setWorld (t: TestContext, options: WorldOptions): Promise<World> {
  const name = randomName('e2e')
  const defaults = { ttl: 2, cacheTtl: 500, requestTimeout: 2000 }
  const settings = { ...defaults, ...options }
  const heartbeat = options.heartbeat ?? settings.ttl * 200
  const client = new Client(options.clientTimeout ?? settings.requestTimeout + 1000)

  // First, and so last to be closed; see atClose().
  const late: (() => Promise<unknown>)[] = []
  atClose(t, async () => { for (const close of late) await close() })
  const ownStore = options.store === 'own' ? await startOwnStore(t) : undefined
  const ownPostgres = options.postgres === 'own' ? await startOwnPostgres(t) : undefined
  tellErrorsHere(t)
  const redisUrl = ownStore?.url ?? requireUrl('REDIS_URL')
  const pgUrl = ownPostgres?.url ?? requireUrl('PG_URL')
  const database = connectDatabase(pgUrl)
  const registry = new Registry({ redis: redisUrl, keyPrefix: name, memberIndex: true, cache: false })
  late.push(
    async () => client.close(),
    () => registry.close(),
    async () => { if (ownStore === undefined) await removeKeys(redisUrl, name) },
    async () => { if (ownPostgres === undefined) await dropSchemas(database, name) },
    () => database.end()
  )

  const tables = options.kind === 'stateful' ? await createNumberTables(database, name) : undefined
  const folder = options.kind === 'stateful' ? await compileStateful() : examples
  const shared = { REDIS_URL: redisUrl, KEY_PREFIX: name, HOST: '127.0.0.1', PORT: '0', CACHE_TTL: String(settings.cacheTtl), LOG_LEVEL: 'warn' }
  const world = new World(t, {
    kind: options.kind,
    name,
    redisUrl,
    pgUrl,
    ownStore,
    ownPostgres,
    database,
    registry,
    client,
    tables,
    podFile: join(folder, options.kind === 'stateful' ? 'stateful-pod.js' : 'pod.js'),
    coordinatorFile: join(folder, options.kind === 'stateful' ? 'stateful-coordinator.js' : 'coordinator.js'),
    podEnv: { ...shared, PG_URL: pgUrl, SCHEMA: name, SCHEMA_PREFIX: name, TTL: String(settings.ttl), HEARTBEAT: String(heartbeat), ...options.podEnv },
    coordinatorEnv: { ...shared, REQUEST_TIMEOUT: String(settings.requestTimeout), ROUTER: options.router ?? 'owner', ...options.coordinatorEnv }
  })
  if (!existsSync(world.parts.podFile)) throw new Error('Compile the example first: npm run build -w storage-db-example')
  await Promise.all([
    ...Array.from({ length: options.pods ?? 3 }, async (_, i) => await world.addPod(`pod-${i + 1}`)),
    ...Array.from({ length: options.coordinators ?? 2 }, async () => await world.addCoordinator())
  ])
  return world
}

interface WorldParts {
  kind: Kind
  name: string
  redisUrl: string
  pgUrl: string
  ownStore: OwnStore | undefined
  ownPostgres: OwnPostgres | undefined
  database: pg.Pool
  registry: Registry
  client: Client
  tables: NumberTables | undefined
  podFile: string
  coordinatorFile: string
  podEnv: NodeJS.ProcessEnv
  coordinatorEnv: NodeJS.ProcessEnv
}

/** The pods, the coordinators, and what a scenario may do to them. */
export class World {
  readonly parts: WorldParts
  /** Past every cache, for looking. */
  readonly registry: Registry
  readonly landing = new Landing()
  /** All ever started, the gone ones too. */
  readonly pods: TestProcess[] = []
  readonly coordinators: TestProcess[] = []
  readonly #t: TestContext
  readonly #releases = new Map<unknown, () => void>()

  constructor (t: TestContext, parts: WorldParts) {
    this.#t = t
    this.parts = parts
    this.registry = parts.registry
  }

  get kind (): Kind {
    return this.parts.kind
  }

  /** The latest process of a memberId. */
  pod (memberId: string): TestProcess {
    const pod = this.pods.findLast(({ name }) => name === memberId)
    if (pod === undefined) throw new Error(`There is no pod ${memberId}`)
    return pod
  }

  /** Pods that run, or are paused. */
  get livePods (): TestProcess[] {
    return this.pods.filter(({ state }) => state !== 'gone')
  }

  /** Addresses of the coordinators that run. */
  get urls (): string[] {
    return this.coordinators.filter(({ state }) => state === 'running').map(({ address }) => address).filter(address => address !== '')
  }

  /** Starts a pod, on a free port: a memberId that was there before comes back on another. */
  async addPod (memberId: string, env: NodeJS.ProcessEnv = {}): Promise<TestProcess> {
    const pod = await startProcess(this.#t, { name: memberId, file: this.parts.podFile, env: { ...this.parts.podEnv, MEMBER_ID: memberId, ...env } })
    this.pods.push(pod)
    return pod
  }

  async addCoordinator (env: NodeJS.ProcessEnv = {}): Promise<TestProcess> {
    const name = `coordinator-${this.coordinators.length + 1}`
    const coordinator = await startProcess(this.#t, { name, file: this.parts.coordinatorFile, env: { ...this.parts.coordinatorEnv, ...env } })
    this.coordinators.push(coordinator)
    return coordinator
  }

  /** Stops something (a process, the own Valkey or PostgreSQL) in its tracks, and has the ledgers know that it may hold requests. */
  async pause (what: TestProcess | OwnStore | OwnPostgres): Promise<void> {
    this.#releases.set(what, this.landing.hold())
    if ('pause' in what) await what.pause()
    else what.freeze()
  }

  resume (what: TestProcess | OwnStore | OwnPostgres): void {
    if ('resume' in what) what.resume()
    else what.thaw()
    this.#releases.get(what)?.()
  }

  /** Throws when a process has ended by itself. */
  check (): void {
    for (const { crash, stderr } of [...this.pods, ...this.coordinators]) {
      if (crash !== undefined) throw new Error(`${crash}:\n${stderr}`)
    }
  }

  /** Before the processes go: a load must not go on without them. */
  onClose (close: () => unknown): void {
    atClose(this.#t, close)
  }

  async binding (destinationId: string): Promise<BoundPod[]> {
    return await this.registry.readBinding(destinationId)
  }

  /** memberIds bound to a destination, live or dead. */
  async ownersOf (destinationId: string): Promise<string[]> {
    return (await this.binding(destinationId)).map(({ memberId }) => memberId)
  }

  /** The process of the one live pod of a destination. */
  async ownerOf (destinationId: string): Promise<TestProcess> {
    const live = (await this.binding(destinationId)).filter(({ isLive }) => isLive)
    assert.equal(live.length, 1, `${destinationId} is bound to ${live.length} live pods`)
    return this.pod(live[0]?.memberId ?? '')
  }

  async send (method: string, path: string, body?: string | object, coordinator: string = this.urls[0] ?? ''): Promise<Reply> {
    return await this.parts.client.send(method, `${coordinator}${path}`, body)
  }

  /**
   * The end of a scenario: lets the load settle what is uncertain, stops it, reads everything back, compares it with the ledger and with what is stored, prints the line of
   * figures, and fails on any finding.
   * @param affected destinations for the second gap of the figures
   */
  async finish<T extends Traffic> (load: Load<T>, title: string, { affected, extra }: { affected?: Iterable<string>, extra?: Record<string, string | number> } = {}): Promise<void> {
    await load.settle()
    await load.stop()
    await load.readAll()
    await load.traffic.compare()
    const { uncertainWrites, uncertain } = load.traffic
    this.#t.diagnostic(load.figures.line(`${title}, ${this.kind}`, { uncertainWrites, uncertainLeft: uncertain.length, affected, extra }))
    assert.deepEqual(load.findings.all, [], String(load.findings))
  }
}

function requireUrl (name: string): string {
  const url = process.env[name]
  if (url === undefined || url === '') throw new Error(`${name} is not set: run the test by npm run test:e2e`)
  return url
}
