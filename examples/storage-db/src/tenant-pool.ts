// The connections of one tenant, and how busy they are.

import type pg from 'pg'
import { connect } from './database.ts'

/** A connection that is in use. */
export interface Lease {
  readonly client: pg.PoolClient
  /** Gives it back, or away when it is broken. Called once. */
  release (isBroken: boolean): void
}

/** What became of a pool between two looks at it. */
export interface Look {
  /** The part of its connections that was in use on average, from 0 to 1. */
  readonly use: number
  /** Whether a request waited for a connection for as long as counts as saturation. */
  readonly wasSaturated: boolean
}

export interface TenantPoolOptions {
  readonly pool: pg.Pool
  /** Milliseconds a request waits, with all connections in use, until the tenant counts as saturated. */
  readonly saturationWait: number
  /** Called for as long as the pool is saturated, once in each such time for each request that waits. */
  readonly onSaturated: () => void
  readonly now: () => number
}

export class TenantPool {
  readonly #pool: pg.Pool
  readonly #max: number
  readonly #options: TenantPoolOptions
  /** Whether the schema has been looked at since this pool was opened, or since a statement found it missing. */
  isOpened = false
  /** Requests that have a connection or wait for one. */
  #users = 0
  #busy = 0
  #busyTime = 0
  #countedUntil: number
  #lookedAt: number
  #wasSaturated = false
  #lastUsedAt: number

  constructor (options: TenantPoolOptions) {
    this.#options = options
    this.#pool = options.pool
    this.#max = options.pool.options.max
    this.#countedUntil = this.#lookedAt = this.#lastUsedAt = options.now()
  }

  /** Connections that are open, or being opened. */
  get openCount (): number {
    return this.#pool.totalCount
  }

  /** @throws STORAGE_OVERLOADED, STORAGE_DATABASE_UNAVAILABLE */
  async acquire (): Promise<Lease> {
    this.#users++
    const stopWaiting = this.#isExhausted ? this.#startWaiting() : undefined
    let client: pg.PoolClient
    try {
      client = await connect(this.#pool)
    } catch (error) {
      this.#leave()
      throw error
    } finally {
      stopWaiting?.()
    }
    this.#count()
    this.#busy++
    return {
      client,
      release: isBroken => {
        this.#count()
        this.#busy--
        this.#leave()
        client.release(isBroken)
      }
    }
  }

  /** Tells what happened since the last look. */
  look (): Look {
    this.#count()
    const elapsed = this.#countedUntil - this.#lookedAt
    const use = elapsed > 0 ? this.#busyTime / (elapsed * this.#max) : 0
    const look = { use, wasSaturated: this.#wasSaturated }
    this.#lookedAt = this.#countedUntil
    this.#busyTime = 0
    this.#wasSaturated = false
    return look
  }

  /** Whether nobody has used it for so many milliseconds, or does now. */
  isUnusedFor (time: number): boolean {
    return this.#users === 0 && this.#options.now() - this.#lastUsedAt >= time
  }

  /** Resolves when all connections are closed, those in use when they are given back. */
  async end (): Promise<void> {
    await this.#pool.end()
  }

  get #isExhausted (): boolean {
    return this.#pool.totalCount >= this.#max && this.#pool.idleCount === 0
  }

  #startWaiting (): () => void {
    const timer = setInterval(() => {
      if (!this.#isExhausted) return
      this.#wasSaturated = true
      this.#options.onSaturated()
    }, this.#options.saturationWait)
    return () => clearInterval(timer)
  }

  #leave (): void {
    this.#users--
    this.#lastUsedAt = this.#options.now()
  }

  /** Adds up connections in use times the time since the last change of their number. */
  #count (): void {
    const now = this.#options.now()
    this.#busyTime += this.#busy * (now - this.#countedUntil)
    this.#countedUntil = now
  }
}
