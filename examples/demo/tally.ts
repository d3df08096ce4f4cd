import type { HelperResult } from '@platformatic/coordinator'

export const phases = ['start', 'claim', 'steady', 'kill', 'drain', 'after'] as const
export type Phase = typeof phases[number]

/** By the client: the status of the reply, 'none' for a request without one. */
export type Statuses = Record<string, number>

/** By the coordinators: what `onResult` was told. */
export type Results = Partial<Record<HelperResult, number>>

/** Counts what became of the requests. Times are milliseconds of `performance.now()`. */
export class Tally {
  /** Failures are counted under the phase in which they happen. */
  phase: Phase = 'start'
  readonly failedByPhase: Record<Phase, number> = { start: 0, claim: 0, steady: 0, kill: 0, drain: 0, after: 0 }
  readonly statuses: Statuses = {}
  readonly results: Results = {}
  readonly answeredBy = new Map<string, number>()
  #longestGap = 0
  readonly #failingSince = new Map<string, number>()

  /** Counts a request of which a coordinator told the result. */
  tell (result: HelperResult): void {
    this.results[result] = (this.results[result] ?? 0) + 1
  }

  answer (memberId: string, destinationId: string, startedAt: number, now = performance.now()): void {
    this.#count(200)
    this.answeredBy.set(memberId, (this.answeredBy.get(memberId) ?? 0) + 1)
    const since = this.#failingSince.get(destinationId)
    // A request that was sent before the one that failed first says nothing about the time after it.
    if (since === undefined || startedAt < since) return
    this.#longestGap = Math.max(this.#longestGap, now - since)
    this.#failingSince.delete(destinationId)
  }

  fail (status: number | 'none', destinationId: string, startedAt: number): void {
    this.#count(status)
    this.failedByPhase[this.phase]++
    this.#failingSince.set(destinationId, Math.min(startedAt, this.#failingSince.get(destinationId) ?? Infinity))
  }

  get answered (): number {
    return sum(this.answeredBy.values())
  }

  get failed (): number {
    return sum(Object.values(this.failedByPhase))
  }

  get sent (): number {
    return this.answered + this.failed
  }

  /** Requests that reached a pod which answered that it does not own the destination. */
  get misrouted (): number {
    return this.statuses[421] ?? 0
  }

  /** Destinations that were taken from a dead pod and given to a live one. */
  get reassigned (): number {
    return this.results.orphan_reassigned ?? 0
  }

  /** Destinations whose last request failed. */
  get failingCount (): number {
    return this.#failingSince.size
  }

  /** The longest time from a destination's first failed request to its next answer; one that is still failing counts until now. */
  getLongestGap (now = performance.now()): number {
    return Math.max(this.#longestGap, ...[...this.#failingSince.values()].map(since => now - since))
  }

  #count (status: number | 'none'): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
  }
}

function sum (numbers: Iterable<number>): number {
  return [...numbers].reduce((total, n) => total + n, 0)
}
