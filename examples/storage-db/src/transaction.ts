// One open transaction: a connection that is taken out of its pool until COMMIT or ROLLBACK, and never longer than its two timers allow.

import { refuseGone } from './client.ts'
import type { IsGone } from './client.ts'
import { isConnectionLost, isSchemaGone, sqlStateOf } from './database.ts'
import { StorageError } from './errors.ts'
import type { Lease } from './tenant-pool.ts'
import type { Statement } from './tenant-store.ts'

export interface TransactionOptions {
  readonly lockId: string
  readonly tenantId: string
  readonly schema: string
  /** In a transaction that has just begun. */
  readonly lease: Lease
  /** Milliseconds between two requests after which it is rolled back. */
  readonly idleTimeout: number
  /** Milliseconds after which it is rolled back whatever happens. */
  readonly lifetime: number
  /** Called once, when it is over and its connection has been given back. */
  readonly onOver: () => void
}

export class Transaction {
  readonly lockId: string
  readonly tenantId: string
  readonly expiresAt: Date
  readonly #options: TransactionOptions
  /** Settled when all requests so far are. Never rejects. */
  #last: Promise<unknown> = Promise.resolve()
  /** Requests that run or wait for their turn. */
  #requestCount = 0
  #idleTimer: NodeJS.Timeout | undefined
  readonly #lifeTimer: NodeJS.Timeout
  /** No request begins any more: it is over, or about to be rolled back. */
  #isClosed = false
  #isOver = false

  constructor (options: TransactionOptions) {
    this.#options = options
    this.lockId = options.lockId
    this.tenantId = options.tenantId
    this.expiresAt = new Date(Date.now() + options.lifetime)
    this.#lifeTimer = setTimeout(() => this.end(), options.lifetime)
    options.lease.client.on('error', this.#onConnectionLost)
    this.#startIdling()
  }

  /**
   * Runs a statement when all requests before it are done.
   * @throws STORAGE_TRANSACTION_NOT_FOUND, STORAGE_TRANSACTION_FAILED, STORAGE_TRANSACTION_LOST, STORAGE_TENANT_NOT_FOUND: it is over;
   *   STORAGE_CLIENT_GONE: it is not
   */
  async run<T> (statement: Statement<T>, isGone: IsGone): Promise<T> {
    return await this.#inTurn(isGone, async () => {
      try {
        return await statement(this.#options.lease.client, this.#options.schema)
      } catch (error) {
        throw await this.#fail(error, 'STORAGE_TRANSACTION_LOST')
      }
    })
  }

  /** What it resolves for is committed. @throws as `run`, and STORAGE_COMMIT_OUTCOME_UNKNOWN */
  async commit (isGone: IsGone): Promise<void> {
    await this.#inTurn(isGone, async () => {
      let command: string
      try {
        command = (await this.#options.lease.client.query('COMMIT')).command
      } catch (error) {
        throw await this.#fail(error, 'STORAGE_COMMIT_OUTCOME_UNKNOWN')
      }
      this.#finish(false)
      // PostgreSQL answers so when a statement had failed before.
      if (command !== 'COMMIT') throw new StorageError('STORAGE_TRANSACTION_FAILED')
    })
  }

  /** @throws STORAGE_TRANSACTION_NOT_FOUND, STORAGE_CLIENT_GONE */
  async rollBack (isGone: IsGone): Promise<void> {
    await this.#inTurn(isGone, () => this.#rollBackNow())
  }

  /** Rolls it back after the statement that runs; requests that wait are refused. For timers, a delete of the tenant, and the pod's stop. */
  async end (): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#last = this.#last.then(() => this.#rollBackNow())
    }
    await this.#last
  }

  async #inTurn<T> (isGone: IsGone, task: () => Promise<T>): Promise<T> {
    this.#refuseClosed()
    this.#requestCount++
    clearTimeout(this.#idleTimer)
    const own = this.#last.then(async () => {
      this.#refuseClosed()
      await refuseGone(isGone)
      this.#refuseClosed()
      return await task()
    })
    this.#last = own.catch(() => {})
    try {
      return await own
    } finally {
      if (--this.#requestCount === 0) this.#startIdling()
    }
  }

  #refuseClosed (): void {
    if (this.#isClosed) throw new StorageError('STORAGE_TRANSACTION_NOT_FOUND')
  }

  #startIdling (): void {
    if (!this.#isClosed) this.#idleTimer = setTimeout(() => this.end(), this.#options.idleTimeout)
  }

  async #rollBackNow (): Promise<void> {
    if (this.#isOver) return
    // Where the connection is broken PostgreSQL has rolled back, or does so when it notices.
    const isBroken = await this.#options.lease.client.query('ROLLBACK').then(() => false, () => true)
    this.#finish(isBroken)
  }

  /** A statement that failed leaves a transaction in which every other one fails too: it ends here. */
  async #fail (error: unknown, codeWhenLost: 'STORAGE_TRANSACTION_LOST' | 'STORAGE_COMMIT_OUTCOME_UNKNOWN'): Promise<StorageError> {
    this.#isClosed = true
    if (isConnectionLost(error)) {
      this.#finish(true)
      return new StorageError(codeWhenLost, { cause: error })
    }
    await this.#rollBackNow()
    if (isSchemaGone(error)) return new StorageError('STORAGE_TENANT_NOT_FOUND', { cause: error })
    return new StorageError('STORAGE_TRANSACTION_FAILED', { cause: error, message: `PostgreSQL refused a statement (${sqlStateOf(error)}): the transaction is over, and nothing of it was written` })
  }

  /** The connection broke: between two statements, or the one that runs is about to hear of it. */
  readonly #onConnectionLost = (): void => {
    this.#isClosed = true
    this.#last = this.#last.then(() => this.#finish(true))
  }

  #finish (isBroken: boolean): void {
    if (this.#isOver) return
    this.#isClosed = this.#isOver = true
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#lifeTimer)
    this.#options.lease.client.off('error', this.#onConnectionLost)
    this.#options.lease.release(isBroken)
    this.#options.onOver()
  }
}
