export const phases = ['start', 'claim', 'steady', 'kill', 'drain', 'after'] as const
export type Phase = typeof phases[number]

/**
 * unresolved: no pod to send it to, or no answer from the store · unreachable: the pod refused the connection, cut it or was too
 * slow · refused: the pod answered with an error · misrouted: the pod answered that it does not own the destination.
 */
export const failures = ['unresolved', 'unreachable', 'refused', 'misrouted'] as const
export type Failure = typeof failures[number]

/** Counts what became of the requests. Times are milliseconds of `performance.now()`. */
export class Tally {
  /** Failures are counted under the phase in which they happen. */
  phase: Phase = 'start'
  /** Destinations that were taken from a dead pod and given to a live one. */
  reassigned = 0
  readonly failedByPhase: Record<Phase, number> = { start: 0, claim: 0, steady: 0, kill: 0, drain: 0, after: 0 }
  readonly failedByReason: Record<Failure, number> = { unresolved: 0, unreachable: 0, refused: 0, misrouted: 0 }
  readonly answeredBy = new Map<string, number>()
  #longestGap = 0
  readonly #failingSince = new Map<string, number>()

  answer (memberId: string, destinationId: string, startedAt: number, now = performance.now()): void {
    this.answeredBy.set(memberId, (this.answeredBy.get(memberId) ?? 0) + 1)
    const since = this.#failingSince.get(destinationId)
    // A request that was sent before the one that failed first says nothing about the time after it.
    if (since === undefined || startedAt < since) return
    this.#longestGap = Math.max(this.#longestGap, now - since)
    this.#failingSince.delete(destinationId)
  }

  fail (reason: Failure, destinationId: string, startedAt: number): void {
    this.failedByReason[reason]++
    this.failedByPhase[this.phase]++
    this.#failingSince.set(destinationId, Math.min(startedAt, this.#failingSince.get(destinationId) ?? Infinity))
  }

  get answered (): number {
    return sum(this.answeredBy.values())
  }

  get failed (): number {
    return sum(Object.values(this.failedByReason))
  }

  get sent (): number {
    return this.answered + this.failed
  }

  /** Destinations whose last request failed. */
  get failingCount (): number {
    return this.#failingSince.size
  }

  /** The longest time from a destination's first failed request to its next answer; one that is still failing counts until now. */
  getLongestGap (now = performance.now()): number {
    return Math.max(this.#longestGap, ...[...this.#failingSince.values()].map(since => now - since))
  }
}

function sum (numbers: Iterable<number>): number {
  return [...numbers].reduce((total, n) => total + n, 0)
}
