// The catalogue: which tenants there are, and the creating and deleting of them. It is the truth, and asked each time: what a pod remembers
// of a tenant ("it exists") is void as soon as another pod deletes it.

import pg from 'pg'
import { refuseGone } from './client.ts'
import type { IsGone } from './client.ts'
import { sqlStateOf, toStorageError, withConnection, withTransaction } from './database.ts'
import { StorageError } from './errors.ts'
import { latestVersion, migrate, migrateCatalogue, tenantMigrations } from './migrations.ts'
import { toLockNumber, toSchemaName } from './schema-name.ts'

/** Milliseconds a delete waits for the statements of a tenant before it looks who holds them up, and how often it does. */
const lockTimeout = 300
const lockTries = 10

export class Tenants {
  readonly #pool: pg.Pool
  readonly #prefix: string
  readonly #table: string

  /** @param pool for the catalogue alone, which needs few connections */
  constructor (pool: pg.Pool, prefix: string) {
    this.#pool = pool
    this.#prefix = prefix
    this.#table = `${pg.escapeIdentifier(prefix)}.tenants`
  }

  /** Creates the catalogue or brings it up to date; any number of pods may do so at once. */
  async prepare (): Promise<void> {
    await withTransaction(this.#pool, async client => {
      const { rows: [database] } = await client.query<{ encoding: string }>("SELECT current_setting('server_encoding') AS encoding")
      if (database?.encoding !== 'UTF8') throw new Error(`Expected a database with the encoding UTF8, got ${database?.encoding}`)
      await lockUntilCommit(client, toLockNumber(this.#prefix))
      await migrateCatalogue(client, this.#prefix)
    })
  }

  async exists (tenantId: string): Promise<boolean> {
    return await this.#readVersion(tenantId) !== null
  }

  /** Those of the tenants that do not exist. */
  async listMissing (tenantIds: readonly string[]): Promise<string[]> {
    try {
      const { rows } = await withConnection(this.#pool, async client => (
        await client.query<{ id: string }>(`SELECT id FROM ${this.#table} WHERE id = ANY($1)`, [tenantIds])
      ))
      const present = new Set(rows.map(({ id }) => id))
      return tenantIds.filter(tenantId => !present.has(tenantId))
    } catch (error) {
      throw toStorageError(error, false)
    }
  }

  /** Brings the schema of a tenant up to date, in case a pod of an earlier version made it. @throws STORAGE_TENANT_NOT_FOUND */
  async open (tenantId: string): Promise<void> {
    const version = await this.#readVersion(tenantId)
    if (version === null) throw new StorageError('STORAGE_TENANT_NOT_FOUND')
    if (version >= latestVersion(tenantMigrations)) return
    await this.#change(async client => {
      await lockUntilCommit(client, this.#lockNumber(tenantId))
      const { rows: [row] } = await client.query<{ version: number }>(`SELECT version FROM ${this.#table} WHERE id = $1`, [tenantId])
      if (row === undefined) throw new StorageError('STORAGE_TENANT_NOT_FOUND')
      const reached = await migrate(client, this.schemaOf(tenantId), tenantMigrations, row.version)
      await client.query(`UPDATE ${this.#table} SET version = $2 WHERE id = $1`, [tenantId, reached])
    })
  }

  /**
   * Creates a tenant with its schema, or finds it: of any number of callers, on any number of pods, one creates.
   * @throws STORAGE_CLIENT_GONE
   */
  async create (tenantId: string, isGone: IsGone): Promise<'created' | 'present'> {
    return await this.#change(async client => {
      await lockUntilCommit(client, this.#lockNumber(tenantId))
      await refuseGone(isGone)
      const schema = this.schemaOf(tenantId)
      const { rowCount } = await client.query(
        `INSERT INTO ${this.#table} (id, schema, version) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
        [tenantId, schema, latestVersion(tenantMigrations)])
      if (rowCount === 0) return 'present'
      await client.query(`CREATE SCHEMA ${pg.escapeIdentifier(schema)}`)
      await migrate(client, schema, tenantMigrations, 0)
      return 'created'
    })
  }

  /**
   * Deletes a tenant with all it holds; false when there is none. Open transactions of it on other pods are broken off.
   * @throws STORAGE_CLIENT_GONE, STORAGE_TENANT_BUSY
   */
  async drop (tenantId: string, isGone: IsGone): Promise<boolean> {
    return await this.#change(async client => {
      await lockUntilCommit(client, this.#lockNumber(tenantId))
      await refuseGone(isGone)
      const { rowCount } = await client.query(`DELETE FROM ${this.#table} WHERE id = $1`, [tenantId])
      if (rowCount === 0) return false
      const schema = pg.escapeIdentifier(this.schemaOf(tenantId))
      await seize(client, `${schema}.entries`)
      // What came while we waited: whoever asked may have given up, asked another pod, and made the tenant anew since.
      await refuseGone(isGone)
      await client.query(`DROP SCHEMA ${schema} CASCADE`)
      return true
    })
  }

  /**
   * Runs a task while nobody else, on any pod, creates, deletes or decides about the pods of this tenant.
   * @returns null, without having run it, when somebody else does so just now
   */
  async tryAlone<T> (tenantId: string, task: (client: pg.PoolClient) => Promise<T>): Promise<T | null> {
    const lockNumber = this.#lockNumber(tenantId)
    return await withConnection(this.#pool, async client => {
      const { rows: [row] } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1::bigint) AS locked', [lockNumber])
      if (row?.locked !== true) return null
      try {
        return await task(client)
      } finally {
        // When the connection broke PostgreSQL has let go of the lock by itself.
        await client.query('SELECT pg_advisory_unlock($1::bigint)', [lockNumber])
      }
    })
  }

  /** The schema of a tenant, not quoted. */
  schemaOf (tenantId: string): string {
    return toSchemaName(this.#prefix, tenantId)
  }

  #lockNumber (tenantId: string): string {
    return toLockNumber(`${this.#prefix}/${tenantId}`)
  }

  async #readVersion (tenantId: string): Promise<number | null> {
    try {
      const { rows } = await withConnection(this.#pool, async client => (
        await client.query<{ version: number }>(`SELECT version FROM ${this.#table} WHERE id = $1`, [tenantId])
      ))
      return rows[0]?.version ?? null
    } catch (error) {
      throw toStorageError(error, false)
    }
  }

  async #change<T> (task: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let isCommitting = false
    try {
      return await withTransaction(this.#pool, async client => {
        const result = await task(client)
        isCommitting = true
        return result
      })
    } catch (error) {
      // A connection that breaks before the COMMIT is sent takes all of it back.
      throw toStorageError(error, isCommitting)
    }
  }
}

async function lockUntilCommit (client: pg.PoolClient, lockNumber: string): Promise<void> {
  await client.query('SELECT pg_advisory_xact_lock($1::bigint)', [lockNumber])
}

/**
 * Locks a table against everybody else. Statements that run are waited for; a transaction that is open and idle may go on for a minute,
 * on this pod or on another, so its connection is broken off: what it wrote is about to go anyway.
 */
async function seize (client: pg.PoolClient, table: string): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = ${lockTimeout}`)
  for (let tries = 0; tries < lockTries; tries++) {
    await client.query('SAVEPOINT seize')
    try {
      await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
      return
    } catch (error) {
      if (sqlStateOf(error) !== '55P03') throw error // lock_not_available
      await client.query('ROLLBACK TO SAVEPOINT seize')
      await client.query(`
        SELECT pg_terminate_backend(holder.pid) FROM pg_locks AS lock JOIN pg_stat_activity AS holder USING (pid)
        WHERE lock.relation = $1::regclass AND lock.granted AND holder.pid <> pg_backend_pid() AND holder.datname = current_database()
          AND holder.state LIKE 'idle in transaction%' AND holder.application_name LIKE 'storage-db %'`, [table])
    }
  }
  throw new StorageError('STORAGE_TENANT_BUSY')
}
