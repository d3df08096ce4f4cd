// The open transactions of this pod: how many a tenant may have, where they are found again, and how all of them end.
//
// Each is known to the coordinators by a lock of the library: its id is the transaction's, and requests that name it come to this pod
// wherever the tenant lives by then.

import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import pg from 'pg'
import type { IsGone } from './client.ts'
import { isConnectionLost, toStorageError } from './database.ts'
import { StorageError } from './errors.ts'
import type { PodMembership } from './pod-membership.ts'
import type { PodSettings } from './settings.ts'
import type { Lease } from './tenant-pool.ts'
import type { TenantStore } from './tenant-store.ts'
import type { Tenants } from './tenants.ts'
import { Transaction } from './transaction.ts'

export const isolationLevels = ['read committed', 'repeatable read', 'serializable'] as const
export type IsolationLevel = typeof isolationLevels[number]

export interface TransactionsOptions {
  readonly settings: Pick<PodSettings, 'transactionIdle' | 'transactionLife' | 'transactionsPerTenant'>
  readonly store: TenantStore
  readonly tenants: Tenants
  readonly membership: Pick<PodMembership, 'isDraining' | 'registerLock' | 'unregisterLock'>
  readonly log: FastifyBaseLogger
}

export class Transactions {
  readonly #options: TransactionsOptions
  readonly #open = new Map<string, Transaction>()
  /** For each tenant, those that are open and those that are about to be. */
  readonly #counts = new Map<string, number>()
  readonly #waitingForNone = new Set<() => void>()

  constructor (options: TransactionsOptions) {
    this.#options = options
  }

  /** Milliseconds between two requests after which one is rolled back. */
  get idleTimeout (): number {
    return this.#options.settings.transactionIdle
  }

  /** Transactions that are open, or about to be. */
  get count (): number {
    let sum = 0
    for (const count of this.#counts.values()) sum += count
    return sum
  }

  /**
   * Begins a transaction and makes it known.
   * @throws STORAGE_POD_DRAINING, STORAGE_TOO_MANY_TRANSACTIONS, STORAGE_TENANT_NOT_FOUND, STORAGE_LOCK_NOT_REGISTERED
   */
  async begin (tenantId: string, isolationLevel: IsolationLevel, isGone: IsGone): Promise<Transaction> {
    this.#refuseDraining()
    // Counted before the first await: of twenty that come at once each sees those before it.
    this.#count(tenantId)
    let lease: Lease
    try {
      lease = await this.#beginOnConnection(tenantId, isolationLevel)
    } catch (error) {
      this.#uncount(tenantId)
      throw toStorageError(error, false)
    }
    const { settings, tenants } = this.#options
    const transaction = new Transaction({
      lockId: randomUUID(),
      tenantId,
      schema: tenants.schemaOf(tenantId),
      lease,
      idleTimeout: settings.transactionIdle,
      lifetime: settings.transactionLife,
      onOver: () => this.#forget(transaction)
    })
    this.#open.set(transaction.lockId, transaction)
    try {
      await this.#makeKnown(transaction, isolationLevel)
      if (isGone()) throw new StorageError('STORAGE_CLIENT_GONE') // nobody will ever name it
    } catch (error) {
      await transaction.end()
      throw error
    }
    return transaction
  }

  /** @throws STORAGE_TRANSACTION_NOT_FOUND */
  get (lockId: string): Transaction {
    const transaction = this.#open.get(lockId)
    if (transaction === undefined) throw new StorageError('STORAGE_TRANSACTION_NOT_FOUND')
    return transaction
  }

  /** Rolls back what is open: of one tenant, or all. */
  async endAll (tenantId?: string): Promise<void> {
    const ends: Array<Promise<void>> = []
    for (const transaction of this.#open.values()) {
      if (tenantId === undefined || transaction.tenantId === tenantId) ends.push(transaction.end())
    }
    await Promise.all(ends)
  }

  /** Resolves when none is open, and at the latest after the timeout, when the rest has been rolled back. Call it when draining has begun. */
  async finish (timeout: number): Promise<void> {
    if (this.count === 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, timeout)
      this.#waitingForNone.add(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    // One that is only now about to begin finds the pod draining, and ends by itself.
    await this.endAll()
  }

  /** Checks the tenant, past every memory of it, and begins. Another connection is tried when PostgreSQL has closed the first. */
  async #beginOnConnection (tenantId: string, isolationLevel: IsolationLevel): Promise<Lease> {
    const { store, tenants } = this.#options
    const table = `${pg.escapeIdentifier(tenants.schemaOf(tenantId))}.entries`
    for (let isSecond = false; ; isSecond = true) {
      const lease = await store.lease(tenantId)
      let isBroken = false
      try {
        const { rows: [row] } = await lease.client.query<{ exists: boolean }>('SELECT to_regclass($1) IS NOT NULL AS exists', [table])
        if (row?.exists !== true) throw store.missing(tenantId)
        await lease.client.query(`BEGIN ISOLATION LEVEL ${isolationLevel.toUpperCase()}`)
        return lease
      } catch (error) {
        isBroken = isConnectionLost(error)
        lease.release(isBroken)
        if (!isBroken || isSecond) throw error
      }
    }
  }

  async #makeKnown ({ lockId, tenantId, expiresAt }: Transaction, isolationLevel: IsolationLevel): Promise<void> {
    try {
      await this.#options.membership.registerLock(lockId, tenantId, { isolationLevel, expiresAt: expiresAt.toISOString() })
    } catch (error) {
      throw new StorageError('STORAGE_LOCK_NOT_REGISTERED', { cause: error })
    }
    this.#refuseDraining()
  }

  #refuseDraining (): void {
    if (this.#options.membership.isDraining) throw new StorageError('STORAGE_POD_DRAINING')
  }

  #forget ({ lockId, tenantId }: Transaction): void {
    this.#open.delete(lockId)
    this.#uncount(tenantId)
    // Nobody waits for it: until it is done requests still come here, and are answered 404 here.
    this.#options.membership.unregisterLock(lockId).catch(error => this.#options.log.warn({ err: error, lockId }, 'could not release a lock'))
  }

  #count (tenantId: string): void {
    const count = this.#counts.get(tenantId) ?? 0
    if (count >= this.#options.settings.transactionsPerTenant) throw new StorageError('STORAGE_TOO_MANY_TRANSACTIONS')
    this.#counts.set(tenantId, count + 1)
  }

  #uncount (tenantId: string): void {
    const count = (this.#counts.get(tenantId) ?? 0) - 1
    if (count > 0) this.#counts.set(tenantId, count)
    else this.#counts.delete(tenantId)
    if (this.#counts.size > 0) return
    for (const tell of this.#waitingForNone) tell()
    this.#waitingForNone.clear()
  }
}
