// How the tables come to be and change: two numbered lists, one for the catalogue and one for the schema of each tenant. A number that has
// been released is never changed, only followed by another, and each must suit the pods of the version before, which run beside it for a
// while. Whoever applies one holds an advisory lock, so that of ten pods that start at once one does it and nine wait.

import pg from 'pg'
import type { Queryable } from './database.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  /** @param schema quoted */
  readonly statements: (schema: string) => readonly string[]
}

export const catalogueMigrations: readonly Migration[] = [
  {
    version: 1,
    name: 'tenants',
    // COLLATE "C": by bytes, whatever the database was created with.
    statements: schema => [`
      CREATE TABLE ${schema}.tenants (
        id text COLLATE "C" PRIMARY KEY,
        schema text COLLATE "C" NOT NULL UNIQUE,
        version integer NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
      )`]
  },
  {
    version: 2,
    name: 'fan-outs',
    // A row for each tenant that lives on several pods, for as long as it does; see fan-out.ts.
    statements: schema => [`
      CREATE TABLE ${schema}.fan_outs (
        tenant_id text COLLATE "C" PRIMARY KEY REFERENCES ${schema}.tenants ON DELETE CASCADE,
        keeper text NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now(),
        saturated_at timestamptz NOT NULL DEFAULT now()
      )`]
  }
]

export const tenantMigrations: readonly Migration[] = [
  {
    version: 1,
    name: 'entries',
    statements: schema => [`
      CREATE TABLE ${schema}.entries (
        key text COLLATE "C" PRIMARY KEY,
        value bytea NOT NULL,
        encoding text NOT NULL CHECK (encoding IN ('text', 'base64'))
      )`]
  }
]

/** The version a list leads to. */
export function latestVersion (migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0
}

/**
 * Applies what a schema lacks, in order. Inside a transaction of the caller, who holds the advisory lock.
 * @returns the version the schema has now; a later one than we know stays, for a newer pod has been here
 */
export async function migrate (client: Queryable, schema: string, migrations: readonly Migration[], fromVersion: number): Promise<number> {
  let version = fromVersion
  for (const migration of migrations) {
    if (migration.version <= fromVersion) continue
    for (const statement of migration.statements(pg.escapeIdentifier(schema))) await client.query(statement)
    version = migration.version
  }
  return version
}

/** Creates the catalogue, or brings it up to date. Inside a transaction of the caller, who holds the advisory lock. */
export async function migrateCatalogue (client: Queryable, schema: string, migrations: readonly Migration[] = catalogueMigrations): Promise<void> {
  const quoted = pg.escapeIdentifier(schema)
  // Not IF NOT EXISTS: it asks for the right to create schemas even where there is nothing to create.
  const { rowCount } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])
  if (rowCount === 0) {
    await client.query(`CREATE SCHEMA ${quoted}`)
    await client.query(`CREATE TABLE ${quoted}.migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  }
  const { rows: [current] } = await client.query<{ version: number }>(`SELECT coalesce(max(version), 0) AS version FROM ${quoted}.migrations`)
  const fromVersion = current?.version ?? 0
  await migrate(client, schema, migrations, fromVersion)
  for (const { version, name } of migrations) {
    if (version > fromVersion) await client.query(`INSERT INTO ${quoted}.migrations (version, name) VALUES ($1, $2)`, [version, name])
  }
}
