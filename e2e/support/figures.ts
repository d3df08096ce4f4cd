import type { Outcome } from './traffic.ts'

/** Numbers of one run, for its line of figures. */
export class Figures {
  readonly #startedAt: number
  #endedAt: number | undefined
  #requests = 0
  #writes = 0
  readonly #failures = new Map<string, number>()
  /** When each successful answer came, by destination. */
  readonly #successes = new Map<string, number[]>()

  constructor (startedAt: number = performance.now()) {
    this.#startedAt = startedAt
  }

  record (outcome: Outcome): void {
    this.#requests++
    if (outcome.isWrite) this.#writes++
    if (outcome.result === 'ok') {
      const known = this.#successes.get(outcome.destinationId)
      if (known === undefined) this.#successes.set(outcome.destinationId, [outcome.endedAt])
      else known.push(outcome.endedAt)
    } else {
      const label = failureLabel(outcome)
      this.#failures.set(label, (this.#failures.get(label) ?? 0) + 1)
    }
  }

  /** Of gaps no longer counts what comes after. */
  end (endedAt: number = performance.now()): void {
    this.#endedAt ??= endedAt
  }

  get requests (): number {
    return this.#requests
  }

  /** Failed requests by status, `none` and `refused` included, with the code of the answer where it had one. */
  get failures (): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#failures].sort())
  }

  /** Failed requests whose label begins so: `5` for all of the five hundreds, `503`, `503 DRAINING`. */
  failed (prefix: string): number {
    return [...this.#failures].reduce((sum, [label, count]) => sum + (label.startsWith(prefix) ? count : 0), 0)
  }

  /** Longest time in ms without a successful answer, for any destination; or the longest that one of those given had to do without. */
  longestGap (destinationIds?: Iterable<string>): number {
    if (destinationIds === undefined) return this.#gap([...this.#successes.values()].flat().sort((a, b) => a - b))
    return Math.max(0, ...[...destinationIds].map(id => this.#gap(this.#successes.get(id) ?? [])))
  }

  /**
   * One line, the same for every scenario:
   * `figures | failover, stateful | requests 812 (writes 650) | failures 502: 3, 503 LAPSED: 9 | uncertain writes 3, left 1 | longest gap 41 ms, affected 2130 ms | took 9.1 s`
   */
  line (title: string, { uncertainWrites, uncertainLeft, affected, extra = {} }: LineOptions): string {
    const failures = Object.entries(this.failures).map(([label, count]) => `${label}: ${count}`).join(', ')
    const gap = `longest gap ${Math.round(this.longestGap())} ms${affected === undefined ? '' : `, affected ${Math.round(this.longestGap(affected))} ms`}`
    return [
      'figures',
      title,
      `requests ${this.#requests} (writes ${this.#writes})`,
      `failures ${failures === '' ? 'none' : failures}`,
      `uncertain writes ${uncertainWrites}, left ${uncertainLeft}`,
      gap,
      ...Object.entries(extra).map(([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`),
      `took ${(((this.#endedAt ?? performance.now()) - this.#startedAt) / 1000).toFixed(1)} s`
    ].join(' | ')
  }

  #gap (moments: number[]): number {
    let longest = 0
    let last = this.#startedAt
    for (const moment of [...moments, this.#endedAt ?? performance.now()]) {
      if (moment > last) {
        longest = Math.max(longest, moment - last)
        last = moment
      }
    }
    return longest
  }
}

export interface LineOptions {
  uncertainWrites: number
  /** Destinations or keys that were uncertain at the end. */
  uncertainLeft: number
  /** Destinations that what the scenario did was done to. */
  affected?: Iterable<string> | undefined
  extra?: Record<string, string | number> | undefined
}

/** `503 LAPSED`, `502 POD_UNREACHABLE`, `none`. */
function failureLabel ({ status, code }: Outcome): string {
  return code === undefined ? String(status) : `${status} ${code.replace(/^PLT_COORDINATOR_/, '')}`
}
