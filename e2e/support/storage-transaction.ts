import assert from 'node:assert/strict'
import type { Reply } from './client.ts'
import { isUncertain } from './traffic.ts'
import type { ValueAttempt, ValueLedger } from './value-ledger.ts'
import type { World } from './world.ts'

let lastValue = 0

/** A value that nobody else writes. @param length in characters, at least; what comes after its own few says nothing */
export function newValue (length: number = 0): string {
  return `t${++lastValue}-`.padEnd(length, 'abcdefghijklmnopqrstuvwxyz')
}

/** The answer of a begin that was not 201. */
export class NotBegun extends Error {
  readonly reply: Reply

  constructor (reply: Reply) {
    super(`Expected a transaction, got ${reply.status} ${JSON.stringify(reply.body)}`)
    this.reply = reply
  }
}

/**
 * A transaction as its client knows it. What it writes counts as on its way until the commit: nobody may read it before. The answer of the
 * commit settles all of it at once. Nobody else writes its keys meanwhile, so that the order of answers says something.
 */
export class StorageTransaction {
  readonly tenantId: string
  readonly lockId: string
  /** The pod that began it, and has to answer everything that follows. */
  readonly memberId: string
  readonly #world: World
  readonly #ledger: ValueLedger
  readonly #writes = new Map<string, { value: string, attempt: ValueAttempt }>()

  constructor (world: World, ledger: ValueLedger, tenantId: string, { body, headers }: Reply) {
    this.#world = world
    this.#ledger = ledger
    this.tenantId = tenantId
    this.lockId = (body as { lockId: string }).lockId
    this.memberId = String(headers['x-storage-pod'])
  }

  /** The values it has written, by key. */
  get values (): ReadonlyMap<string, string> {
    return new Map([...this.#writes].map(([key, { value }]) => [key, value]))
  }

  async put (key: string, value: string = newValue()): Promise<Reply> {
    const reply = await this.send('PUT', `/keys/${encodeURIComponent(key)}`, { value })
    if (reply.status === 204) {
      this.#writes.get(key)?.attempt.refused() // the later value takes its place
      this.#writes.set(key, { value, attempt: this.#ledger.begin(`${this.tenantId}/${key}`, value) })
    }
    return reply
  }

  async get (key: string): Promise<Reply> {
    return await this.send('GET', `/keys/${encodeURIComponent(key)}`)
  }

  async commit (): Promise<Reply> {
    const reply = await this.send('POST', '/commit')
    for (const { attempt } of this.#writes.values()) {
      if (reply.status === 204) attempt.acknowledged(reply.sentAt)
      else if (isUncertain(reply)) attempt.uncertain(reply.endedAt)
      else attempt.refused()
    }
    return reply
  }

  async rollBack (): Promise<Reply> {
    this.giveUp()
    return await this.send('POST', '/rollback')
  }

  /** It will never be committed: what it wrote counts as not written, and read anywhere it is a finding. */
  giveUp (): void {
    for (const { attempt } of this.#writes.values()) attempt.refused()
  }

  /** Sends through any of the coordinators, and holds the answer against the pod that has to give it. */
  async send (method: string, path: string, body?: object): Promise<Reply> {
    const reply = await this.#world.send(method, `/transactions/${encodeURIComponent(this.lockId)}${path}`, body, anyOf(this.#world.urls))
    // A coordinator that answers by itself names none.
    const memberId = reply.headers['x-storage-pod']
    if (memberId !== undefined) assert.equal(memberId, this.memberId, `${method} ${path} of a transaction of ${this.memberId} was answered by ${memberId}`)
    return reply
  }
}

/** Begins a transaction through any of the coordinators, or the given one. @throws NotBegun */
export async function beginTransaction (world: World, ledger: ValueLedger, tenantId: string, coordinator: string = anyOf(world.urls)): Promise<StorageTransaction> {
  const reply = await world.send('POST', `/tenants/${encodeURIComponent(tenantId)}/transactions`, undefined, coordinator)
  if (reply.status !== 201) throw new NotBegun(reply)
  return new StorageTransaction(world, ledger, tenantId, reply)
}

/**
 * Reads a key outside of every transaction, through each coordinator until every pod of the tenant has answered there, and holds all that is
 * read against the ledger.
 * @returns the different values, null for none
 */
export async function readEverywhere (world: World, ledger: ValueLedger, tenantId: string, key: string): Promise<Set<string | null>> {
  const seen = new Set<string | null>()
  for (const coordinator of world.urls) {
    const waiting = new Set((await world.binding(tenantId)).filter(({ isLive }) => isLive).map(({ memberId }) => memberId))
    for (let tries = 0; waiting.size > 0; tries++) {
      const { status, body, headers } = await world.send('GET', `/tenants/${encodeURIComponent(tenantId)}/keys/${encodeURIComponent(key)}`, undefined, coordinator)
      assert.ok(status === 200 || status === 404, `${status} ${JSON.stringify(body)}`)
      const value = status === 200 ? (body as { value: string }).value : null
      ledger.read(`${tenantId}/${key}`, value)
      seen.add(value)
      waiting.delete(String(headers['x-storage-pod']))
      if (waiting.size === 0) break
      // A pod that has left meanwhile is waited for no more.
      const owners = await world.ownersOf(tenantId)
      for (const memberId of waiting) if (!owners.includes(memberId)) waiting.delete(memberId)
      assert.ok(tries < 200, `${[...waiting].join(', ')} of ${tenantId} did not answer through ${coordinator}`)
    }
  }
  return seen
}

function anyOf (urls: readonly string[]): string {
  const url = urls[Math.floor(Math.random() * urls.length)]
  if (url === undefined) throw new Error('There is no coordinator to send to')
  return url
}
