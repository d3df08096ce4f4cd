// One pool of connections for each tenant that this pod serves, opened by the first request and closed when nobody has used it for a while.
// What they have open in all is the load that the pod publishes.

import type pg from 'pg'
import { TenantPool } from './tenant-pool.ts'
import type { Look } from './tenant-pool.ts'

export interface PoolManagerOptions {
  readonly createPool: () => pg.Pool
  /** Milliseconds after which an unused pool is closed. */
  readonly poolIdle: number
  readonly saturationWait: number
  /** All connections of the tenant are in use, and a request has been waiting for one for `saturationWait`. */
  readonly onSaturated: (tenantId: string) => unknown
  readonly now?: () => number
}

export class PoolManager {
  readonly #options: PoolManagerOptions
  readonly #now: () => number
  readonly #pools = new Map<string, TenantPool>()
  readonly #closing = new Set<Promise<void>>()
  readonly #sweep: NodeJS.Timeout

  constructor (options: PoolManagerOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#sweep = setInterval(() => this.closeUnused(), Math.max(10, options.poolIdle / 4))
  }

  /** Connections open over all tenants. The few of the catalogue are left out: every pod has them. */
  get openCount (): number {
    let sum = 0
    for (const pool of this.#pools.values()) sum += pool.openCount
    return sum
  }

  /** Tenants that have a pool. */
  get tenantCount (): number {
    return this.#pools.size
  }

  /** The pool of a tenant, made when there is none. */
  get (tenantId: string): TenantPool {
    let pool = this.#pools.get(tenantId)
    if (pool === undefined) {
      pool = new TenantPool({
        pool: this.#options.createPool(),
        saturationWait: this.#options.saturationWait,
        onSaturated: () => this.#options.onSaturated(tenantId),
        now: this.#now
      })
      this.#pools.set(tenantId, pool)
    }
    return pool
  }

  /** What a tenant's connections did since the last look; nothing for one that has no pool. */
  look (tenantId: string): Look {
    return this.#pools.get(tenantId)?.look() ?? { use: 0, wasSaturated: false }
  }

  /** Whether the catalogue knew the tenant when its pool was opened, and no statement has found it gone since. */
  isOpened (tenantId: string): boolean {
    return this.#pools.get(tenantId)?.isOpened === true
  }

  /** Has the next request for a tenant ask the catalogue again: its schema was dropped. */
  forget (tenantId: string): void {
    const pool = this.#pools.get(tenantId)
    if (pool !== undefined) pool.isOpened = false
  }

  closeUnused (): void {
    for (const [tenantId, pool] of this.#pools) {
      if (!pool.isUnusedFor(this.#options.poolIdle)) continue
      // Out of the map first: a request that comes now opens another.
      this.#pools.delete(tenantId)
      this.#end(pool)
    }
  }

  /** Resolves when all connections are closed. Call it when no request is under way. */
  async close (): Promise<void> {
    clearInterval(this.#sweep)
    for (const pool of this.#pools.values()) this.#end(pool)
    this.#pools.clear()
    await Promise.all(this.#closing)
  }

  #end (pool: TenantPool): void {
    const end = pool.end().finally(() => this.#closing.delete(end))
    this.#closing.add(end)
  }
}
