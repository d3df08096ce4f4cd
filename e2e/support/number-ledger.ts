import type { Findings } from './findings.ts'
import type { Landing } from './landing.ts'
import type { LoggedWrite, StoredNumber } from './storage.ts'

/** A write on its way: exactly one of the three is called, once. */
export interface NumberAttempt {
  readonly writeId: string
  /** @param sentAt when the request was sent */
  acknowledged (number: number, sentAt: number): void
  /** No answer, or one that leaves open whether it was carried out. */
  uncertain (givenUpAt: number): void
  /** An answer that says it was not carried out. */
  refused (): void
}

interface Account {
  /** The highest number known to be taken. */
  last: number
  /** When each write was given up that may still have a number of its own. */
  open: number[]
}

let lastWriteId = 0

/**
 * What clients of the stateful pods know: each destination's acknowledged writes took consecutive numbers. The next acknowledged number is
 * `last + 1`, plus one for each write without an answer that may have been carried out since; never one that was there before. One request
 * at a time for a destination, or the order of the answers says nothing.
 *
 * A write without an answer keeps its place in this sum until an acknowledged write was sent after its landing deadline (landing.ts): from
 * then on it was carried out before, or never is. At the end the log of the pods settles every one of them by its id.
 */
export class NumberLedger {
  readonly #findings: Findings
  readonly #landing: Landing
  readonly #accounts = new Map<string, Account>()
  /** By write id: the acknowledged number, or how it ended otherwise. */
  readonly #writes = new Map<string, { destinationId: string, outcome: number | 'uncertain' | 'refused' | 'open' }>()

  constructor (findings: Findings, landing: Landing) {
    this.#findings = findings
    this.#landing = landing
  }

  begin (destinationId: string): NumberAttempt {
    const writeId = `w${++lastWriteId}`
    const write: { destinationId: string, outcome: number | 'uncertain' | 'refused' | 'open' } = { destinationId, outcome: 'open' }
    this.#writes.set(writeId, write)
    const account = this.#account(destinationId)
    return {
      writeId,
      acknowledged: (number, sentAt) => {
        write.outcome = number
        if (number <= account.last) {
          this.#findings.add('repeated', destinationId, `${writeId} got ${number}, and ${account.last} was taken`)
          // The one who counts is another now: the comparison goes on from there, or each later number would be one more finding.
          account.last = number
        } else {
          this.#advance(destinationId, number - 1)
          account.last = number
        }
        account.open = account.open.filter(givenUpAt => this.#landing.deadline(givenUpAt) > sentAt)
      },
      uncertain: givenUpAt => {
        write.outcome = 'uncertain'
        account.open.push(givenUpAt)
      },
      refused: () => { write.outcome = 'refused' }
    }
  }

  /** Holds a read against what is known. */
  read (destinationId: string, number: number): void {
    const { last } = this.#account(destinationId)
    if (number < last) this.#findings.add('went-back', destinationId, `read ${number}, and ${last} was taken`)
    else this.#advance(destinationId, number)
  }

  /** Destinations with a write of which nobody knows yet whether it was, or will be, carried out. */
  get uncertain (): string[] {
    return [...this.#accounts].filter(([, { open }]) => open.length > 0).map(([destinationId]) => destinationId)
  }

  /** Writes without an answer in the whole run. */
  get uncertainWrites (): number {
    return [...this.#writes.values()].filter(({ outcome }) => outcome === 'uncertain').length
  }

  /**
   * Holds what is stored at the end against it, write by write: for every destination the log has each number from 1 once, with the id of
   * the write that was told this number, or of one without an answer.
   */
  compare (stored: StoredNumber[], log: LoggedWrite[]): void {
    const numbers = new Map(stored.map(each => [each.destinationId, each]))
    const logged = new Map<string, LoggedWrite>()
    const taken = new Map<string, LoggedWrite>()
    for (const entry of log) {
      const { destinationId, number, writeId, memberId } = entry
      const twin = taken.get(`${destinationId} ${number}`)
      if (twin !== undefined) this.#findings.add('repeated', destinationId, `${number} was stored for ${twin.writeId} by ${twin.memberId} and for ${writeId} by ${memberId}`)
      taken.set(`${destinationId} ${number}`, entry)
      if (logged.has(writeId)) this.#findings.add('executed-twice', destinationId, `${writeId} was stored as ${logged.get(writeId)?.number} and as ${number}`)
      logged.set(writeId, entry)
      const write = this.#writes.get(writeId)
      if (write === undefined || write.destinationId !== destinationId) this.#findings.add('foreign', destinationId, `${writeId} was stored, and never sent`)
      else if (write.outcome === 'refused') this.#findings.add('executed-though-refused', destinationId, `${writeId} was stored as ${number}`)
    }
    for (const [writeId, { destinationId, outcome }] of this.#writes) {
      if (typeof outcome === 'number' && logged.get(writeId)?.number !== outcome) {
        this.#findings.add('lost', destinationId, `${writeId} was acknowledged as ${outcome} and is ${logged.get(writeId)?.number ?? 'not'} in the log`)
      }
    }
    for (const [destinationId, { last }] of this.#accounts) {
      const row = numbers.get(destinationId)
      const number = row?.number ?? 0
      if (number < last) this.#findings.add('lost', destinationId, `${last} was acknowledged, and ${number} is stored`)
      if (row !== undefined && taken.get(`${destinationId} ${number}`)?.writeId !== row.writeId) this.#findings.add('foreign', destinationId, `${number} is stored for ${row.writeId}, and the log says otherwise`)
      for (let i = 1; i <= number; i++) {
        if (!taken.has(`${destinationId} ${i}`)) this.#findings.add('skipped', destinationId, `${i} is in no line of the log, and ${number} is stored`)
      }
      const rest = [...taken.values()].filter(entry => entry.destinationId === destinationId && entry.number > number)
      for (const entry of rest) this.#findings.add('lost', destinationId, `${entry.number} was stored for ${entry.writeId}, and ${number} is there`)
    }
  }

  /** Numbers up to this one are taken: by writes without an answer, as far as it is not the last known. */
  #advance (destinationId: string, number: number): void {
    const account = this.#account(destinationId)
    const missing = number - account.last
    if (missing > account.open.length) {
      this.#findings.add('skipped', destinationId, `${missing} numbers after ${account.last} are taken, and ${account.open.length} writes are without an answer`)
    }
    // Which of them it was nobody can tell. That the oldest were keeps the sum as large as it can be.
    account.open = account.open.sort((a, b) => this.#landing.deadline(a) - this.#landing.deadline(b)).slice(missing)
    account.last = number
  }

  #account (destinationId: string): Account {
    let account = this.#accounts.get(destinationId)
    if (account === undefined) {
      account = { last: 0, open: [] }
      this.#accounts.set(destinationId, account)
    }
    return account
  }
}
