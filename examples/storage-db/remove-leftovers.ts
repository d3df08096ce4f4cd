// Removes what a run wrote. An installation has no need for this: these are its data.

import { Redis } from 'iovalkey'
import pg from 'pg'

/** Removes the keys of a prefix from Valkey, and the schemas of a prefix from PostgreSQL. */
export async function removeLeftovers (redisUrl: string, keyPrefix: string, pgUrl: string, schemaPrefix: string): Promise<void> {
  await Promise.all([removeKeys(redisUrl, keyPrefix), dropSchemas(pgUrl, schemaPrefix)])
}

async function removeKeys (url: string, keyPrefix: string): Promise<void> {
  const client = new Redis(url, { maxRetriesPerRequest: 1, connectTimeout: 1000, commandTimeout: 2000 })
  client.on('error', () => {}) // the commands below report it
  try {
    for await (const keys of client.scanStream({ match: `${keyPrefix}:*`, count: 1000 })) {
      if (keys.length > 0) await client.unlink(keys)
    }
  } finally {
    client.disconnect()
  }
}

async function dropSchemas (url: string, schemaPrefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000, query_timeout: 10_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ name: string }>(
      'SELECT nspname AS name FROM pg_namespace WHERE nspname = $1 OR starts_with(nspname, $2)', [schemaPrefix, `${schemaPrefix}_t_`])
    // One by one: each takes locks on all it drops, of which PostgreSQL has a fixed number.
    for (const { name } of rows) await client.query(`DROP SCHEMA ${pg.escapeIdentifier(name)} CASCADE`)
  } finally {
    await client.end().catch(() => {})
  }
}
