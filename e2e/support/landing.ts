/** Milliseconds after which a request that nobody waits for any more has been carried out, or never is. */
const usualLandingMs = 2000

/**
 * Until when a write without an answer may still be carried out. It travels on without its client: in a queue of the pod, in a connection,
 * in PostgreSQL. Where everything runs that is over soon. While something is paused or frozen it is not, so a scenario that does this says
 * so with `hold()`, and the time counts from the moment it goes on.
 */
export class Landing {
  readonly #landingMs: number
  readonly #holds: { from: number, to: number }[] = []
  readonly #now: () => number

  constructor (landingMs: number = usualLandingMs, now: () => number = () => performance.now()) {
    this.#landingMs = landingMs
    this.#now = now
  }

  /** Something is stopped that may have requests in it. @returns to be called when it goes on, or is gone with them */
  hold (): () => void {
    const hold = { from: this.#now(), to: Infinity }
    this.#holds.push(hold)
    return () => { if (hold.to === Infinity) hold.to = this.#now() }
  }

  /** The moment from which a write that was given up at the given one cannot be carried out any more. */
  deadline (givenUpAt: number): number {
    let deadline = givenUpAt + this.#landingMs
    for (const { from, to } of this.#holds) {
      if (from < deadline && to >= givenUpAt) deadline = Math.max(deadline, to + this.#landingMs)
    }
    return deadline
  }
}
