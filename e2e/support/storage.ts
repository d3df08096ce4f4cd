import { randomBytes } from 'node:crypto'
import pg from 'pg'

/** The tables of the stateful pods, in a schema of this test. */
export interface NumberTables {
  /** The stored number of each destination, and all writes in the order in which PostgreSQL took them; both of one moment. */
  read (): Promise<{ stored: StoredNumber[], log: LoggedWrite[] }>
}

export interface StoredNumber {
  destinationId: string
  number: number
  writeId: string
}

export interface LoggedWrite extends StoredNumber {
  memberId: string
}

/** A connection for setting up and comparing, which outlives a restart of PostgreSQL. */
export function connectDatabase (url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 5000 })
  pool.on('error', () => {})
  pool.on('connect', client => { client.on('error', () => {}) }) // the pool listens to idle ones alone
  return pool
}

export function randomName (kind: string): string {
  return `${kind}_${randomBytes(5).toString('hex')}`
}

/** Makes the schema and tables of the stateful pods. */
export async function createNumberTables (pool: pg.Pool, schema: string): Promise<NumberTables> {
  // No constraint on the numbers: what a wrong router makes of them has to get in.
  await pool.query(`
    CREATE SCHEMA ${schema};
    CREATE TABLE ${schema}.numbers (destination text PRIMARY KEY, number bigint NOT NULL, write_id text NOT NULL);
    CREATE TABLE ${schema}.log (id bigserial PRIMARY KEY, destination text NOT NULL, number bigint NOT NULL, write_id text NOT NULL,
      member_id text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`)
  return {
    async read () {
      const client = await pool.connect()
      try {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
        const stored = await client.query(`SELECT destination, number, write_id FROM ${schema}.numbers`)
        const log = await client.query(`SELECT destination, number, write_id, member_id FROM ${schema}.log ORDER BY id`)
        await client.query('COMMIT')
        return { stored: stored.rows.map(toNumber), log: log.rows.map(row => ({ ...toNumber(row), memberId: row.member_id })) }
      } finally {
        client.release()
      }
    }
  }
}

function toNumber (row: { destination: string, number: string, write_id: string }): StoredNumber {
  return { destinationId: row.destination, number: Number(row.number), writeId: row.write_id }
}

/** Drops all schemas whose name begins with the prefix. */
export async function dropSchemas (pool: pg.Pool, prefix: string): Promise<void> {
  const { rows } = await pool.query('SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)', [prefix])
  for (const { nspname } of rows) await pool.query(`DROP SCHEMA ${pg.escapeIdentifier(nspname)} CASCADE`)
}
