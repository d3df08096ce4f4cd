const none: readonly never[] = []

/** Pods that refused a connection a moment ago, as seen from this process alone. No ground to replace them: only to prefer others. */
export class Suspects {
  readonly #timeMs: number
  readonly #now: () => number
  /** When each stops being suspect, the earliest first. */
  readonly #until = new Map<string, number>()

  constructor (timeMs: number, now: () => number) {
    this.#timeMs = timeMs
    this.#now = now
  }

  add (memberId: string): void {
    this.#until.delete(memberId)
    this.#until.set(memberId, this.#now() + this.#timeMs)
  }

  /** Whether there are none. */
  get isEmpty (): boolean {
    return this.#until.size === 0
  }

  /** Leaves out the suspects, unless that leaves none: then it looks among `others`, and takes the members as they are when those are no better. */
  avoid<M extends { memberId: string }> (members: M[], others: readonly M[] = none): M[] {
    if (this.#until.size === 0) return members
    this.#forgetOld()
    if (this.#until.size === 0) return members
    for (const list of [members, others]) {
      const trusted = list.filter(({ memberId }) => !this.#until.has(memberId))
      if (trusted.length > 0) return trusted
    }
    return members
  }

  #forgetOld (): void {
    const now = this.#now()
    for (const [memberId, until] of this.#until) {
      if (until > now) return
      this.#until.delete(memberId)
    }
  }
}
