/** What a ledger holds against the system. */
export type Rule =
  | 'repeated' // a number that was acknowledged before, or one below it
  | 'skipped' // numbers missing that no write without an answer can have taken
  | 'went-back' // a read below what was acknowledged
  | 'interleaving' // pod A, then B, then A again
  | 'incarnation' // an answer from a process that another had followed
  | 'lost' // an acknowledged write that is not stored, or is read back differently
  | 'foreign' // something stored that nobody wrote
  | 'executed-twice' // one write stored two times
  | 'executed-though-refused' // a write stored that was answered as not done
  | 'malformed' // a 2xx that is no answer of a pod

export interface Finding {
  rule: Rule
  /** Destination, or tenant and key. */
  subject: string
  message: string
}

/** Collects findings; the ledgers of one run share it. */
export class Findings {
  readonly all: Finding[] = []

  add (rule: Rule, subject: string, message: string): void {
    this.all.push({ rule, subject, message })
  }

  count (rule: Rule): number {
    return this.all.filter(finding => finding.rule === rule).length
  }

  /** How many of each rule. */
  get counts (): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { rule } of this.all) counts[rule] = (counts[rule] ?? 0) + 1
    return counts
  }

  /** At most 20 of them, one a line. */
  toString (): string {
    const lines = this.all.slice(0, 20).map(({ rule, subject, message }) => `${rule}: ${subject}: ${message}`)
    return [`${this.all.length} findings`, ...lines].join('\n')
  }
}
