import type { Candidate } from './types.ts'

/** Reads a script's flat reply from front to back. */
export class ReplyReader {
  readonly #reply: readonly unknown[]
  #at = 0

  constructor (reply: unknown) {
    this.#reply = reply as readonly unknown[]
  }

  get isAtEnd (): boolean {
    return this.#at >= this.#reply.length
  }

  text (): string {
    const value = this.#reply[this.#at++]
    return typeof value === 'string' ? value : String(value)
  }

  count (): number {
    return Number(this.#reply[this.#at++])
  }

  /** A count, then that many things, each read by `read`. */
  list<T> (read: () => T): T[] {
    const count = this.count()
    const list: T[] = []
    while (list.length < count) list.push(read())
    return list
  }

  /** A load as published: NaN for what is no number, the empty text included. */
  load (): number {
    const text = this.text()
    const load = Number(text)
    // Number takes the empty text, and spaces, for 0.
    return load === 0 && text.trim() === '' ? NaN : load
  }

  pending (): number {
    const pending = this.load()
    return Number.isFinite(pending) ? pending : 0
  }

  /** The remaining life of a key; Infinity where it does not expire. */
  milliseconds (): number {
    const ms = Number(this.text())
    return ms < 0 ? Infinity : ms
  }

  /** All texts that are left. */
  rest (): string[] {
    const rest = this.#reply.slice(this.#at).map(String)
    this.#at = this.#reply.length
    return rest
  }
}

/** The five texts of a live member: id, address, load, pending, draining. */
export function decodeCandidate (reply: ReplyReader): Candidate {
  const memberId = reply.text()
  const address = reply.text()
  const load = reply.load()
  return { memberId, address, load, pending: reply.pending(), draining: reply.text() === '1' }
}
