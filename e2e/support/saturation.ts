import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from './client.ts'
import type { Load } from './load.ts'
import { beginTransaction, newValue, NotBegun } from './storage-transaction.ts'
import type { StorageTraffic } from './storage-traffic.ts'
import { codeOf, isUncertain } from './traffic.ts'
import type { Outcome } from './traffic.ts'
import type { World } from './world.ts'

const putsPerTransaction = 8
const valueLength = 32 * 1024

export interface SaturationOptions {
  /** Clients with a transaction open nearly all the time: as many as a pod has connections for the tenant. */
  holders: number
  /** Clients that write and read without one, and so wait for a connection. */
  lanes: number
}

/**
 * A load that is more than one pod's connections for a tenant can take, whatever the speed of the machine: transactions hold them for the
 * length of many requests, and the other requests wait for as long.
 */
export class Saturation {
  /** How many writes of each pod were acknowledged. */
  readonly servedBy = new Map<string, number>()
  readonly keys: string[] = []
  /** Transactions that were committed. */
  commits = 0
  /** Begins that were refused with 429, as the cap of the tenant says. */
  atCap = 0
  readonly #world: World
  readonly #load: Load<StorageTraffic>
  readonly #tenantId: string
  readonly #clients: Promise<void>[]
  #isStopped = false
  #error: unknown

  constructor (world: World, load: Load<StorageTraffic>, tenantId: string, { holders, lanes }: SaturationOptions) {
    this.#world = world
    this.#load = load
    this.#tenantId = tenantId
    this.#clients = [
      ...Array.from({ length: holders }, (_, i) => this.#hold(Array.from({ length: putsPerTransaction }, (_, j) => this.#key(`held-${i + 1}-${j + 1}`)))),
      ...Array.from({ length: lanes }, (_, i) => this.#write(this.#key(`waiting-${i + 1}`)))
    ].map(client => client.catch(error => { this.#error ??= error }))
    world.onClose(() => this.stop().catch(() => {}))
  }

  /** Sends nothing new and waits for what is under way. @throws what ended a client */
  async stop (): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
    if (this.#error !== undefined) throw this.#error
  }

  /** Reads all it has written, for the ledger. */
  async readBack (): Promise<void> {
    for (const key of this.keys) {
      let outcome: Outcome
      do outcome = await this.#load.traffic.read(this.#anyCoordinator(), { destinationId: this.#tenantId, key })
      while (outcome.result !== 'ok' && (this.#world.check(), await sleep(20), true))
    }
  }

  async #hold (keys: string[]): Promise<void> {
    while (!this.#isStopped) {
      try {
        const transaction = await beginTransaction(this.#world, this.#load.traffic.values, this.#tenantId)
        let last: Reply | undefined
        for (const key of keys) {
          last = await transaction.put(key, newValue(valueLength))
          if (last.status !== 204) break
        }
        if (last?.status === 204) {
          last = await transaction.commit()
          if (last.status === 204) this.commits++
        } else {
          transaction.giveUp()
        }
        this.#record(last)
      } catch (error) {
        if (!(error instanceof NotBegun)) throw error
        if (error.reply.status === 429) this.atCap++
        else this.#record(error.reply)
        await sleep(20)
      }
    }
  }

  async #write (key: string): Promise<void> {
    while (!this.#isStopped) {
      const outcome = await this.#load.traffic.write(this.#anyCoordinator(), { destinationId: this.#tenantId, key })
      this.#count(outcome)
    }
  }

  #record (reply: Reply | undefined): void {
    if (reply === undefined) return
    const { status, headers, body, sentAt, endedAt } = reply
    const memberId = headers['x-storage-pod']
    this.#count({
      destinationId: this.#tenantId,
      isWrite: true,
      result: status === 204 ? 'ok' : isUncertain(reply) ? 'uncertain' : 'failed',
      status,
      code: codeOf(body),
      memberId: typeof memberId === 'string' ? memberId : undefined,
      sentAt,
      endedAt
    })
  }

  #count (outcome: Outcome): void {
    this.#load.figures.record(outcome)
    const { result, memberId } = outcome
    if (result === 'ok' && memberId !== undefined) this.servedBy.set(memberId, (this.servedBy.get(memberId) ?? 0) + 1)
  }

  #key (key: string): string {
    this.keys.push(key)
    return key
  }

  #anyCoordinator (): string {
    const { urls } = this.#world
    const url = urls[Math.floor(Math.random() * urls.length)]
    if (url === undefined) throw new Error('There is no coordinator to send to')
    return url
  }
}
