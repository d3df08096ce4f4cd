// Statements on a tenant outside of transactions: finds a connection, runs one statement, and makes of every failure something that can be
// said to a client.
//
// A pod serves any tenant that it is asked for, bound to it or not. The data are PostgreSQL's, so two pods that serve one tenant for a while
// (a coordinator may go by a binding that is CACHE_TTL old) get in each other's way no more than two connections do. A pod that held the
// state in its memory would have to refuse here what it does not own, with 421, and fence its writes.

import { refuseGone } from './client.ts'
import type { IsGone } from './client.ts'
import { isConnectionLost, isSchemaGone, toStorageError } from './database.ts'
import type { Queryable } from './database.ts'
import { StorageError } from './errors.ts'
import type { PoolManager } from './pool-manager.ts'
import type { Lease } from './tenant-pool.ts'
import type { Tenants } from './tenants.ts'

export type Statement<T> = (client: Queryable, schema: string) => Promise<T>

export interface WriteOptions {
  readonly isGone: IsGone
  /** Whether doing it twice is the same as doing it once, for the data and for the answer. */
  readonly isIdempotent: boolean
}

export class TenantStore {
  readonly #pools: PoolManager
  readonly #tenants: Tenants
  /** A failure that took longer than this was no broken connection but a PostgreSQL that may still be at work. */
  readonly #repeatWithin: number

  constructor (pools: PoolManager, tenants: Tenants, statementTimeout: number) {
    this.#pools = pools
    this.#tenants = tenants
    this.#repeatWithin = statementTimeout
  }

  /** @throws STORAGE_TENANT_NOT_FOUND, and the others of a database that is away or overloaded */
  async read<T> (tenantId: string, statement: Statement<T>): Promise<T> {
    return await this.#run(tenantId, statement, { isWrite: false, isRepeatable: true, isGone: () => false })
  }

  /**
   * As `read`. What it resolves to is committed.
   * @throws STORAGE_WRITE_OUTCOME_UNKNOWN, STORAGE_CLIENT_GONE
   */
  async write<T> (tenantId: string, { isGone, isIdempotent }: WriteOptions, statement: Statement<T>): Promise<T> {
    return await this.#run(tenantId, statement, { isWrite: true, isRepeatable: isIdempotent, isGone })
  }

  /**
   * A connection of a tenant that was there when the pod served it last; it may be gone since.
   * @throws STORAGE_TENANT_NOT_FOUND, STORAGE_OVERLOADED, STORAGE_DATABASE_UNAVAILABLE
   */
  async lease (tenantId: string): Promise<Lease> {
    const isOpened = this.#pools.isOpened(tenantId)
    // Before a pool is made: an id that anybody can make up must cost no memory.
    if (!isOpened) await this.#tenants.open(tenantId)
    const pool = this.#pools.get(tenantId)
    if (!isOpened) pool.isOpened = true
    return await pool.acquire()
  }

  /** What to throw when the schema of a tenant is gone. The next request asks the catalogue again. */
  missing (tenantId: string, cause?: unknown): StorageError {
    this.#pools.forget(tenantId)
    return new StorageError('STORAGE_TENANT_NOT_FOUND', { cause })
  }

  async #run<T> (tenantId: string, statement: Statement<T>, { isWrite, isRepeatable, isGone }: { isWrite: boolean, isRepeatable: boolean, isGone: IsGone }): Promise<T> {
    const schema = this.#tenants.schemaOf(tenantId)
    for (let isSecond = false; ; isSecond = true) {
      const lease = await this.lease(tenantId)
      const startedAt = performance.now()
      let isBroken = false
      try {
        if (isWrite) await refuseGone(isGone)
        return await statement(lease.client, schema)
      } catch (error) {
        isBroken = isConnectionLost(error)
        if (isSchemaGone(error)) throw this.missing(tenantId, error)
        // An idle connection that PostgreSQL closed a moment ago, most likely.
        const mayRepeat = isBroken && isRepeatable && !isSecond && performance.now() - startedAt < this.#repeatWithin
        if (!mayRepeat) throw toStorageError(error, isWrite)
      } finally {
        lease.release(isBroken)
      }
    }
  }
}
