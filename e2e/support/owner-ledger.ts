import type { Findings } from './findings.ts'

interface Answer {
  memberId: string
  incarnation: string
  sentAt: number
  endedAt: number
}

interface Window {
  from: number
  to: number
  destinationIds: ReadonlySet<string> | null
}

/**
 * Which pod answered for which destination. Outside of the windows that a scenario states, a destination that went from pod A to pod B does
 * not come back to A; and a process that another of its memberId has followed answers nothing any more. One request at a time for a
 * destination: then an answer that is later was also asked for later.
 */
export class OwnerLedger {
  readonly #findings: Findings
  readonly #answers = new Map<string, Answer[]>()
  readonly #windows: Window[] = []
  /** By memberId: its incarnations in the order of their first answers. */
  readonly #incarnations = new Map<string, { incarnation: string, seenAt: number }[]>()
  readonly #now: () => number

  constructor (findings: Findings, now: () => number = () => performance.now()) {
    this.#findings = findings
    this.#now = now
  }

  /**
   * From now on ownership may move: an answer to a request that was under way in the window is not held against the others.
   * @param destinationIds whose; all when not given
   * @returns closes the window
   */
  openWindow (destinationIds?: Iterable<string>): () => void {
    const window: Window = { from: this.#now(), to: Infinity, destinationIds: destinationIds === undefined ? null : new Set(destinationIds) }
    this.#windows.push(window)
    return () => { if (window.to === Infinity) window.to = this.#now() }
  }

  /** Takes down an answer of a pod, in the order in which they came. */
  saw (destinationId: string, answer: Answer): void {
    const known = this.#answers.get(destinationId)
    if (known === undefined) this.#answers.set(destinationId, [answer])
    else known.push(answer)
    this.#checkIncarnation(destinationId, answer)
  }

  /** The pod that answered last for a destination. */
  latest (destinationId: string): string | undefined {
    return this.#answers.get(destinationId)?.at(-1)?.memberId
  }

  /** The pods that answered for a destination, each time it changed. */
  succession (destinationId: string): string[] {
    const memberIds = (this.#answers.get(destinationId) ?? []).map(({ memberId }) => memberId)
    return memberIds.filter((memberId, i) => memberId !== memberIds[i - 1])
  }

  /** Processes of a memberId that answered, first one first. */
  incarnations (memberId: string): string[] {
    return (this.#incarnations.get(memberId) ?? []).map(({ incarnation }) => incarnation)
  }

  /** Judges all that was seen, once at the end: only then all windows are known. */
  judge (): void {
    for (const [destinationId, answers] of this.#answers) {
      let left = new Set<string>()
      let current = answers[0]?.memberId
      for (const { memberId, sentAt, endedAt } of answers) {
        if (this.#isInWindow(destinationId, sentAt, endedAt)) left = new Set()
        else if (memberId !== current && current !== undefined) {
          left.add(current)
          if (left.has(memberId)) this.#findings.add('interleaving', destinationId, `${memberId} answered after ${current}, and before it`)
        }
        current = memberId
      }
    }
  }

  #isInWindow (destinationId: string, sentAt: number, endedAt: number): boolean {
    return this.#windows.some(({ from, to, destinationIds }) => sentAt <= to && endedAt >= from && (destinationIds === null || destinationIds.has(destinationId)))
  }

  /** Asked for after a later process had answered, an earlier one cannot be there. Of answers that were under way together none is later. */
  #checkIncarnation (destinationId: string, { memberId, incarnation, sentAt, endedAt }: Answer): void {
    const known = this.#incarnations.get(memberId) ?? []
    this.#incarnations.set(memberId, known)
    const at = known.findIndex(each => each.incarnation === incarnation)
    if (at === -1) {
      known.push({ incarnation, seenAt: endedAt })
      return
    }
    if (known.slice(at + 1).some(({ seenAt }) => seenAt < sentAt)) {
      this.#findings.add('incarnation', destinationId, `${memberId} answered as ${incarnation} after a later process of it had`)
    }
  }
}
