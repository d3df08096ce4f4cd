import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/store.ts'
import { Figures } from './figures.ts'
import type { Findings } from './findings.ts'
import type { Outcome, Traffic, Unit } from './traffic.ts'

export interface LoadOptions<T extends Traffic = Traffic> {
  traffic: T
  findings: Findings
  /** Addresses of the coordinators, as they are at the moment. */
  coordinators: () => string[]
  /** Throws when a process has ended by itself: then there is nothing to wait for. */
  check?: () => void
  /** Requests under way at once; each lane has units of its own, so that no unit has two. */
  lanes: number
  /** Milliseconds a lane rests after an answer. */
  paceMs: number
  /** Part of the requests that are reads. */
  readShare: number
}

/** Clients that write and read through the coordinators, any of them for each request, until they are stopped. */
export class Load<T extends Traffic = Traffic> {
  readonly figures = new Figures()
  readonly traffic: T
  readonly #options: LoadOptions<T>
  readonly #lanes: Promise<void>[]
  /** When the last acknowledged write of each destination was sent, and to whom. */
  readonly #writes = new Map<string, { sentAt: number, memberId: string | undefined }>()
  #isStopped = false

  constructor (options: LoadOptions<T>) {
    this.#options = options
    this.traffic = options.traffic
    const { units } = options.traffic
    const lanes = Math.min(options.lanes, units.length)
    this.#lanes = Array.from({ length: lanes }, (_, lane) => this.#run(units.filter((_, i) => i % lanes === lane)))
  }

  get findings (): Findings {
    return this.#options.findings
  }

  get destinationIds (): string[] {
    return [...new Set(this.traffic.units.map(({ destinationId }) => destinationId))]
  }

  /** The pod that acknowledged the last write of a destination. */
  servedBy (destinationId: string): string | undefined {
    return this.#writes.get(destinationId)?.memberId
  }

  /** Waits until each of the destinations, or all, has had a write acknowledged that was sent after this call. */
  async progress (destinationIds: Iterable<string> = this.destinationIds, deadlineMs = 30_000): Promise<void> {
    const calledAt = performance.now()
    const waiting = new Set(destinationIds)
    await until(() => {
      this.#options.check?.()
      for (const id of waiting) {
        if ((this.#writes.get(id)?.sentAt ?? 0) >= calledAt) waiting.delete(id)
      }
      return waiting.size === 0
    }, 'each destination has had another write', deadlineMs).catch(error => { throw new Error(`${error.message}: not ${[...waiting].join(', ')}; failures ${JSON.stringify(this.figures.failures)}`) })
  }

  /** Waits until so many more requests have been answered. */
  async requests (count: number, deadlineMs = 30_000): Promise<void> {
    const goal = this.figures.requests + count
    await until(() => {
      this.#options.check?.()
      return this.figures.requests >= goal
    }, `${count} more requests were answered`, deadlineMs)
  }

  /**
   * Waits until acknowledged writes have settled all that was uncertain, so that the comparison leaves nothing out. Where something is
   * paused for good it gives up: those stay uncertain.
   */
  async settle (deadlineMs = 10_000): Promise<void> {
    const deadline = performance.now() + deadlineMs
    while (!this.#isStopped && this.traffic.uncertain.length > 0 && performance.now() < deadline) await sleep(20)
  }

  /** Sends nothing new and waits for what is under way. */
  async stop (): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#lanes)
    this.figures.end()
  }

  /** Reads every unit back, until each was answered. */
  async readAll (deadlineMs = 30_000): Promise<void> {
    await Promise.all(this.#options.traffic.units.map(async unit => {
      let outcome: Outcome | undefined
      await until(async () => {
        outcome = await this.traffic.read(this.#coordinator(), unit)
        return outcome.result === 'ok'
      }, `${unit.destinationId} ${unit.key} is read back`, deadlineMs).catch(error => { throw new Error(`${error.message}: ${JSON.stringify(outcome)}`) })
    }))
  }

  async #run (units: readonly Unit[]): Promise<void> {
    const { traffic, readShare, paceMs } = this.#options
    for (let turn = 0; !this.#isStopped; turn++) {
      const unit = units[turn % units.length] as Unit
      const isRead = Math.random() < readShare
      const outcome = await (isRead ? traffic.read(this.#coordinator(), unit) : traffic.write(this.#coordinator(), unit))
      this.figures.record(outcome)
      if (outcome.result === 'ok' && outcome.isWrite) this.#writes.set(outcome.destinationId, { sentAt: outcome.sentAt, memberId: outcome.memberId })
      if (!this.#isStopped) await sleep(paceMs)
    }
  }

  #coordinator (): string {
    const all = this.#options.coordinators()
    const one = all[Math.floor(Math.random() * all.length)]
    if (one === undefined) throw new Error('There is no coordinator to send to')
    return one
  }
}
