import type { Pool, PoolClient } from 'pg'
import type { Lease } from './lease.ts'

/** Why a request was not served; only `OUTCOME_UNKNOWN` may have written. */
export type RefusalCode = 'DRAINING' | 'CLOSED' | 'LAPSED' | 'QUIET' | 'DATABASE_AWAY' | 'OUTCOME_UNKNOWN'

export class Refused extends Error {
  readonly code: RefusalCode

  constructor (code: RefusalCode) {
    super(code)
    this.code = code
  }
}

/** open: serves all · draining: serves what it holds · closed: serves nothing */
type Gate = 'open' | 'draining' | 'closed'

interface Entry { number: number }

/**
 * The numbers this pod holds, one for each destination, in memory. The write-through is a plain overwrite on purpose: with a comparison in
 * PostgreSQL a router that sends requests to anybody would be found out there, and its damage would never be seen.
 */
export class Numbers {
  readonly #pool: Pool
  readonly #schema: string
  readonly #memberId: string
  readonly #held = new Map<string, Entry>()
  /** The end of the last request of each destination: one begins when the one before has ended, also when the state was dropped meanwhile. */
  readonly #queues = new Map<string, Promise<unknown>>()
  #gate: Gate = 'open'

  constructor (pool: Pool, schema: string, memberId: string) {
    this.#pool = pool
    this.#schema = schema
    this.#memberId = memberId
  }

  get size (): number {
    return this.#held.size
  }

  held (): Iterable<string> {
    return this.#held.keys()
  }

  drop (destinationId: string): void {
    this.#held.delete(destinationId)
  }

  setGate (gate: Gate): void {
    this.#gate = gate
  }

  /** Resolves when no request is under way. */
  async settle (): Promise<void> {
    while (this.#queues.size > 0) await Promise.allSettled(this.#queues.values())
  }

  async read (destinationId: string, lease: Lease): Promise<number> {
    return await this.#inTurn(destinationId, lease, async ({ number }) => number)
  }

  /** Takes the next number and stores it under the write id before it is answered. */
  async write (destinationId: string, writeId: string, lease: Lease): Promise<number> {
    return await this.#inTurn(destinationId, lease, async (entry, client) => {
      const number = entry.number + 1
      try {
        // Sent in the turn of the event loop in which the lease was looked at: nothing but a stop of the process at this very line parts them.
        await client.query(
          `WITH logged AS (INSERT INTO ${this.#schema}.log (destination, number, write_id, member_id) VALUES ($1, $2, $3, $4))
           INSERT INTO ${this.#schema}.numbers (destination, number, write_id) VALUES ($1, $2, $3)
           ON CONFLICT (destination) DO UPDATE SET number = excluded.number, write_id = excluded.write_id`,
          [destinationId, number, writeId, this.#memberId])
      } catch {
        this.drop(destinationId)
        throw new Refused('OUTCOME_UNKNOWN')
      }
      entry.number = number
      // It was stored while this pod owned the destination, or another pod has overwritten it since: who was stopped in between cannot tell.
      if (!lease.isValid() || this.#held.get(destinationId) !== entry) throw new Refused('OUTCOME_UNKNOWN')
      return number
    })
  }

  async #inTurn (destinationId: string, lease: Lease, work: (entry: Entry, client: PoolClient) => Promise<number>): Promise<number> {
    const earlier = this.#queues.get(destinationId) ?? Promise.resolve()
    const turn = earlier.then(() => this.#serve(destinationId, lease, work))
    const end = turn.catch(() => {}).finally(() => {
      if (this.#queues.get(destinationId) === end) this.#queues.delete(destinationId)
    })
    this.#queues.set(destinationId, end)
    return await turn
  }

  async #serve (destinationId: string, lease: Lease, work: (entry: Entry, client: PoolClient) => Promise<number>): Promise<number> {
    this.#check(destinationId, lease)
    let client: PoolClient
    try {
      client = await this.#pool.connect()
    } catch {
      throw new Refused('DATABASE_AWAY')
    }
    let isBroken = true
    try {
      const entry = this.#held.get(destinationId) ?? await this.#load(destinationId, lease, client)
      // Waiting for the connection took time as well.
      if (!lease.isValid() || this.#held.get(destinationId) !== entry) throw new Refused('LAPSED')
      const number = await work(entry, client)
      isBroken = false
      return number
    } catch (error) {
      isBroken = error instanceof Refused && (error.code === 'DATABASE_AWAY' || error.code === 'OUTCOME_UNKNOWN')
      throw error
    } finally {
      client.release(isBroken)
    }
  }

  async #load (destinationId: string, lease: Lease, client: PoolClient): Promise<Entry> {
    this.#check(destinationId, lease)
    const { term } = lease
    let rows: { number: string }[]
    try {
      rows = (await client.query(`SELECT number FROM ${this.#schema}.numbers WHERE destination = $1`, [destinationId])).rows
    } catch {
      throw new Refused('DATABASE_AWAY')
    }
    // Stopped while the answer was on its way, this process would take an old number for the current one.
    if (!lease.isValid() || lease.term !== term) throw new Refused('LAPSED')
    const entry = { number: Number(rows[0]?.number ?? 0) }
    this.#held.set(destinationId, entry)
    return entry
  }

  #check (destinationId: string, lease: Lease): void {
    if (this.#gate === 'closed') throw new Refused('CLOSED')
    if (!lease.isValid()) throw new Refused('LAPSED')
    if (this.#held.has(destinationId)) return
    if (this.#gate === 'draining') throw new Refused('DRAINING')
    if (lease.isQuiet()) throw new Refused('QUIET')
  }
}
