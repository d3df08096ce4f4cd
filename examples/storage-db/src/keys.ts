// The four statements on the keys of a tenant, the same inside a transaction and outside.

import pg from 'pg'
import type { Queryable } from './database.ts'
import type { Encoding, StoredValue } from './values.ts'

/** A page of keys, sorted by their bytes. */
export interface KeyPage {
  readonly keys: string[]
  /** The `after` of the next page; null when this is the last. */
  readonly next: string | null
}

export async function putKey (client: Queryable, schema: string, key: string, { bytes, encoding }: StoredValue): Promise<void> {
  await client.query(
    `INSERT INTO ${entries(schema)} (key, value, encoding) VALUES ($1, $2, $3)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value, encoding = excluded.encoding`,
    [key, bytes, encoding])
}

/** Null when there is no such key. */
export async function getKey (client: Queryable, schema: string, key: string): Promise<StoredValue | null> {
  const { rows: [row] } = await client.query<{ value: Buffer, encoding: Encoding }>(`SELECT value, encoding FROM ${entries(schema)} WHERE key = $1`, [key])
  return row === undefined ? null : { bytes: row.value, encoding: row.encoding }
}

/** False when there was no such key. */
export async function deleteKey (client: Queryable, schema: string, key: string): Promise<boolean> {
  const { rowCount } = await client.query(`DELETE FROM ${entries(schema)} WHERE key = $1`, [key])
  return rowCount !== 0
}

export async function listKeys (client: Queryable, schema: string, after: string | undefined, limit: number): Promise<KeyPage> {
  // Every key is longer than none.
  const { rows } = await client.query<{ key: string }>(`SELECT key FROM ${entries(schema)} WHERE key > $1 ORDER BY key LIMIT $2`, [after ?? '', limit + 1])
  const keys = rows.slice(0, limit).map(row => row.key)
  return { keys, next: rows.length > limit ? keys.at(-1) ?? null : null }
}

function entries (schema: string): string {
  return `${pg.escapeIdentifier(schema)}.entries`
}
