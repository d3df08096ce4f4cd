import type { LiveMembers } from './live-members.ts'
import type { Candidate } from './types.ts'

const freshMs = 1000
const usableMs = 5000

export interface MemberViewOptions {
  read: () => Promise<LiveMembers>
  /** Starts a refresh for which nobody waits. */
  startRefresh: (refresh: () => Promise<unknown>) => void
  /** Milliseconds on a monotonic clock. */
  now: () => number
}

/**
 * The list of live members as read lately, from which candidates are picked before the claim script is sent, so that a first touch
 * costs one round trip. The script looks at the candidates again: an old view costs a second try, never a wrong binding.
 */
export class MemberView {
  readonly #read: () => Promise<LiveMembers>
  readonly #startRefresh: (refresh: () => Promise<unknown>) => void
  readonly #now: () => number
  #candidates: Candidate[] = []
  #byId = new Map<string, Candidate>()
  #readAt = -Infinity
  #reading: { readonly sentAt: number, readonly result: Promise<Candidate[]> } | undefined
  #next: Promise<Candidate[]> | undefined

  constructor ({ read, startRefresh, now }: MemberViewOptions) {
    this.#read = read
    this.#startRefresh = startRefresh
    this.#now = now
  }

  /** When the read that gave the list was sent. */
  get readAt (): number {
    return this.#readAt
  }

  /** Members to choose from, not draining: at once while the list is younger than 5 s, else after a read. */
  candidates (): Candidate[] | Promise<Candidate[]> {
    const ageMs = this.#now() - this.#readAt
    if (this.#candidates.length === 0 || ageMs > usableMs) return this.#reading?.result ?? this.#startReading()
    if (ageMs > freshMs && this.#reading === undefined) this.#startRefresh(() => this.#reading?.result ?? this.#startReading())
    return this.#candidates
  }

  /**
   * Members to choose from by a read that was sent at `time` or later. Those who come while an earlier one is under way share the next,
   * and the failure of the earlier: one after the other they would wait twice as long for a store that is away.
   */
  async candidatesSince (time: number): Promise<Candidate[]> {
    const reading = this.#reading
    if (this.#readAt >= time) return this.#candidates
    if (reading !== undefined && reading.sentAt >= time) return await reading.result
    if (this.#next !== undefined) return await this.#next
    if (reading === undefined) return await this.#startReading()
    this.#next = this.#after(reading.result)
    return await this.#next
  }

  /** Takes a list that was read for another purpose. */
  replace ({ live }: LiveMembers, sentAt: number): void {
    if (sentAt < this.#readAt) return
    this.#readAt = sentAt
    this.#candidates = live.filter(member => !member.draining)
    this.#byId = new Map(this.#candidates.map(candidate => [candidate.memberId, candidate]))
  }

  /** Takes the present figures of some members from the reply of a claim. */
  update (figures: { memberId: string, load: number, pending: number }[]): void {
    for (const { memberId, load, pending } of figures) {
      const candidate = this.#byId.get(memberId)
      if (candidate !== undefined) Object.assign(candidate, { load, pending })
    }
  }

  async #after (earlier: Promise<unknown>): Promise<Candidate[]> {
    try {
      await earlier
    } finally {
      this.#next = undefined
    }
    return await this.#startReading()
  }

  #startReading (): Promise<Candidate[]> {
    const sentAt = this.#now()
    const result = this.#read().then(
      members => {
        this.replace(members, sentAt)
        return this.#candidates
      }
    ).finally(() => {
      if (this.#reading === reading) this.#reading = undefined
    })
    const reading = { sentAt, result }
    this.#reading = reading
    return result
  }
}
