// Which schema a tenant lives in. The name is made from a hash of the id, for PostgreSQL cuts names at 63 bytes and what people do to fit
// an id into a name (lower case, underscores for dashes) gives two tenants one schema. It is always quoted all the same.

import { createHash } from 'node:crypto'

const maxNameBytes = 63

/** The schema of a tenant: as many digits of the hash as fit, at least 36 (144 bits). */
export function toSchemaName (prefix: string, tenantId: string): string {
  const start = tenantSchemaStart(prefix)
  return start + createHash('sha256').update(tenantId, 'utf8').digest('hex').slice(0, maxNameBytes - start.length)
}

/** What the schemas of all tenants begin with; the schema of the catalogue is the prefix alone. */
export function tenantSchemaStart (prefix: string): string {
  return `${prefix}_t_`
}

/** The number of an advisory lock, of which PostgreSQL has one set per database: a bigint, as text. */
export function toLockNumber (name: string): string {
  return createHash('sha256').update(name, 'utf8').digest().readBigInt64BE().toString()
}
