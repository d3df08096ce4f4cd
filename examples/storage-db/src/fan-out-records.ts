// What is recorded in PostgreSQL of tenants that live on several pods: a row each, for as long as they do. Ages are told by the clock of
// PostgreSQL alone, since those of the pods may differ.

import pg from 'pg'
import type { Queryable } from './database.ts'
import type { FanOutRecord } from './fan-out-rule.ts'

export class FanOutRecords {
  readonly #table: string
  readonly #tenants: string

  constructor (schemaPrefix: string) {
    const schema = pg.escapeIdentifier(schemaPrefix)
    this.#table = `${schema}.fan_outs`
    this.#tenants = `${schema}.tenants`
  }

  /** All of them: few, whatever the number of tenants. */
  async list (client: Queryable): Promise<FanOutRecord[]> {
    const { rows } = await client.query<FanOutRecord>(this.#select())
    return rows
  }

  async read (client: Queryable, tenantId: string): Promise<FanOutRecord | null> {
    const { rows: [row] } = await client.query<FanOutRecord>(`${this.#select()} WHERE tenant_id = $1`, [tenantId])
    return row ?? null
  }

  /** Records that a pod is added just now; false when there is no such tenant. */
  async add (client: Queryable, tenantId: string, keeper: string): Promise<boolean> {
    const { rowCount } = await client.query(
      `INSERT INTO ${this.#table} (tenant_id, keeper) SELECT id, $2 FROM ${this.#tenants} WHERE id = $1
       ON CONFLICT (tenant_id) DO UPDATE SET keeper = excluded.keeper, changed_at = now(), saturated_at = now()`, [tenantId, keeper])
    return rowCount === 1
  }

  /** Records that a pod left just now, and others than the keeper are still there. */
  async markChanged (client: Queryable, tenantId: string): Promise<void> {
    await client.query(`UPDATE ${this.#table} SET changed_at = now() WHERE tenant_id = $1`, [tenantId])
  }

  async markSaturated (client: Queryable, tenantId: string): Promise<void> {
    await client.query(`UPDATE ${this.#table} SET saturated_at = now() WHERE tenant_id = $1`, [tenantId])
  }

  async remove (client: Queryable, tenantId: string): Promise<void> {
    await client.query(`DELETE FROM ${this.#table} WHERE tenant_id = $1`, [tenantId])
  }

  #select (): string {
    const age = (column: string): string => `(extract(epoch FROM clock_timestamp() - ${column}) * 1000)::float8`
    return `SELECT tenant_id AS "tenantId", keeper, ${age('changed_at')} AS "changedAgo", ${age('saturated_at')} AS "saturatedAgo" FROM ${this.#table}`
  }
}
