import type { Findings } from './findings.ts'
import type { Landing } from './landing.ts'

/** The value of a key; null when there is none. */
export type Value = string | null

/** A write, or with null a delete, on its way: exactly one of the three is called, once. */
export interface ValueAttempt {
  acknowledged (sentAt: number): void
  uncertain (givenUpAt: number): void
  refused (): void
}

interface Account {
  /** What the last write that is known to have been carried out left. */
  current: Value
  earlier: Set<Value>
  /** Writes without an answer that may have been carried out, or may yet be. */
  open: { value: Value, givenUpAt: number }[]
}

/**
 * What clients of storage-db know: the last acknowledged value of each key. One request at a time for a key, and no value written twice.
 *
 * A write without an answer makes its key uncertain: besides the acknowledged value its own is right as well, and nothing else, so that an
 * older acknowledged value is a loss even there. It may also be carried out later, after an acknowledged one. So it is settled by an
 * acknowledged write only when that was sent after its landing deadline (landing.ts), or when its value was read: then it is there and
 * what was acknowledged before is gone by the client's own hand. A key with a write that was never settled is uncertain for good.
 */
export class ValueLedger {
  readonly #findings: Findings
  readonly #landing: Landing
  readonly #accounts = new Map<string, Account>()
  uncertainWrites = 0

  constructor (findings: Findings, landing: Landing) {
    this.#findings = findings
    this.#landing = landing
  }

  begin (key: string, value: Value): ValueAttempt {
    const account = this.#account(key)
    return {
      acknowledged: sentAt => {
        account.earlier.add(account.current)
        account.current = value
        account.open = account.open.filter(({ givenUpAt }) => this.#landing.deadline(givenUpAt) > sentAt)
      },
      uncertain: givenUpAt => {
        this.uncertainWrites++
        account.open.push({ value, givenUpAt })
      },
      refused: () => {}
    }
  }

  /** Holds a value that was read against what is known. */
  read (key: string, value: Value): void {
    const account = this.#account(key)
    if (value === account.current) return
    const landed = account.open.find(write => write.value === value)
    if (landed !== undefined) {
      account.open = account.open.filter(write => write !== landed)
      account.earlier.add(account.current)
      account.current = value
      return
    }
    const isOlder = account.earlier.has(value)
    this.#findings.add(isOlder || value === null ? 'lost' : 'foreign', key,
      `read ${show(value)}${isOlder ? ', which was overwritten' : ''}; ${show(account.current)} was acknowledged last, and ${account.open.length} writes are without an answer`)
  }

  /** Keys of which more than one value would be right. */
  get uncertain (): string[] {
    return [...this.#accounts].filter(([, { open }]) => open.length > 0).map(([key]) => key)
  }

  /** All keys ever written or read. */
  get keys (): string[] {
    return [...this.#accounts.keys()]
  }

  #account (key: string): Account {
    let account = this.#accounts.get(key)
    if (account === undefined) {
      account = { current: null, earlier: new Set(), open: [] }
      this.#accounts.set(key, account)
    }
    return account
  }
}

function show (value: Value): string {
  return value === null ? 'nothing' : JSON.stringify(value.slice(0, 60))
}
