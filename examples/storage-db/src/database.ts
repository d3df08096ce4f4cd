// PostgreSQL as the rest sees it: how a pool is set up so that nothing waits for ever, and what an error of it means.

import pg from 'pg'
import { StorageError } from './errors.ts'
import type { DatabaseSettings } from './settings.ts'

/** What runs a statement: a connection out of a pool, inside a transaction or not. */
export type Queryable = Pick<pg.ClientBase, 'query'>

/** Opens no connection yet. */
export function createPool (settings: DatabaseSettings, max: number, idleTimeout: number, onError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({
    connectionString: settings.pgUrl,
    application_name: settings.applicationName,
    max,
    idleTimeoutMillis: idleTimeout,
    connectionTimeoutMillis: settings.connectTimeout,
    // PostgreSQL cancels a statement that takes too long. One that is frozen cannot: then the client gives up, and the connection with it.
    statement_timeout: settings.statementTimeout,
    query_timeout: settings.statementTimeout + 1000,
    // A pod that was paused, or cut off, must not hold the locks of its open transactions for ever.
    idle_in_transaction_session_timeout: settings.abandonedTransactionTimeout,
    keepAlive: true
  })
  // An idle connection broke, as when PostgreSQL restarts: the pool has dropped it and opens another when one is needed.
  pool.on('error', onError)
  // The pool listens to idle connections alone. One that breaks in use fails its query, which is enough.
  pool.on('connect', client => { client.on('error', () => {}) })
  return pool
}

/** The SQLSTATE of an error that PostgreSQL answered with; undefined when the connection broke or the answer did not come. */
export function sqlStateOf (error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/** Whether the connection is of no use after this error. */
export function isConnectionLost (error: unknown): boolean {
  if (error instanceof StorageError) return false
  return !(error instanceof pg.DatabaseError) || error.severity === 'FATAL' || error.severity === 'PANIC'
}

/** Whether a statement failed because the schema of its tenant is gone: it was dropped, here or by another pod. */
export function isSchemaGone (error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '42P01' || state === '3F000'
}

/** What the client is told of a failure outside of its transactions. What is not foreseen stays as it is, for the log. */
export function toStorageError (error: unknown, isWrite: boolean): unknown {
  if (error instanceof StorageError) return error
  if (isConnectionLost(error)) return new StorageError(isWrite ? 'STORAGE_WRITE_OUTCOME_UNKNOWN' : 'STORAGE_DATABASE_UNAVAILABLE', { cause: error })
  // Cancelled (57…), a deadlock or another conflict (40…), out of memory, disk or connections (53…), a lock not given (55…): rolled back.
  if (/^(40|53|55|57)/.test(sqlStateOf(error) ?? '')) return new StorageError('STORAGE_STATEMENT_FAILED', { cause: error })
  return error
}

/** Takes a connection for a task, outside of any transaction. */
export async function withConnection<T> (pool: pg.Pool, task: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await connect(pool)
  let isBroken = false
  try {
    return await task(client)
  } catch (error) {
    isBroken = isConnectionLost(error)
    throw error
  } finally {
    client.release(isBroken)
  }
}

/** Runs a task in a transaction: committed when it resolves, rolled back when it rejects. */
export async function withTransaction<T> (pool: pg.Pool, task: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return await withConnection(pool, async client => {
    try {
      await client.query('BEGIN')
      const result = await task(client)
      await client.query('COMMIT')
      return result
    } catch (error) {
      // On a broken connection PostgreSQL does it by itself. If it fails here, that error goes on: the connection is of no use.
      if (!isConnectionLost(error)) await client.query('ROLLBACK')
      throw error
    }
  })
}

/** @throws STORAGE_OVERLOADED, STORAGE_DATABASE_UNAVAILABLE */
export async function connect (pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    // Whatever it is, no statement was sent.
    const isFull = pool.totalCount >= pool.options.max && sqlStateOf(error) === undefined
    throw new StorageError(isFull ? 'STORAGE_OVERLOADED' : 'STORAGE_DATABASE_UNAVAILABLE', { cause: error })
  }
}
