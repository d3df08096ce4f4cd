import { settlesWithin } from './connection.ts'
import { publish } from './diagnostics.ts'
import { CoordinatorError } from './errors.ts'
import { encodeFeature, featureMismatch } from './feature-check.ts'
import type { LoadSource } from './load-source.ts'
import type { LockKeeper } from './lock-keeper.ts'
import type { MemberRecord, MemberScripts, Writer } from './member-scripts.ts'
import type { CheckedMemberOptions } from './options.ts'

/** idle: not registered yet · open: registered · superseded: a later process has the id · left: deregister() or close() was called */
export type Standing = 'idle' | 'open' | 'superseded' | 'left'

export interface MembershipOptions {
  options: CheckedMemberOptions
  incarnation: string
  scripts: MemberScripts
  load: LoadSource
  locks: LockKeeper
  report: (error: CoordinatorError) => void
}

/** Writes the record of one member, one write at a time, and knows whether this process may still write it. */
export class Membership {
  readonly #options: CheckedMemberOptions
  readonly #incarnation: string
  readonly #scripts: MemberScripts
  readonly #load: LoadSource
  readonly #locks: LockKeeper
  readonly #report: (error: CoordinatorError) => void
  #standing: Standing = 'idle'
  #registeredAt = '0'
  #isDraining = false
  /** `pending` as of the last beat's reply: the load of the next beat contains it. */
  #counted = 0
  /** Rises when the member leaves, so that what began before does not write after. */
  #departures = 0
  #beat: Promise<boolean> | undefined
  /** Settled when the write before and all earlier ones are. Never rejects. */
  #lastWrite: Promise<void> = Promise.resolve()

  constructor ({ options, incarnation, scripts, load, locks, report }: MembershipOptions) {
    this.#options = options
    this.#incarnation = incarnation
    this.#scripts = scripts
    this.#load = load
    this.#locks = locks
    this.#report = report
  }

  get standing (): Standing {
    return this.#standing
  }

  /** Who writes, as of now; no longer allowed to once the member has left after this. */
  get writer (): Writer {
    const departures = this.#departures
    return {
      memberId: this.#options.memberId,
      incarnation: this.#incarnation,
      registeredAt: this.#registeredAt,
      mayWrite: () => departures === this.#departures
    }
  }

  /** Resolves when no write is under way. */
  get settled (): Promise<void> {
    return this.#lastWrite
  }

  /** @throws PLT_COORDINATOR_FEATURE_MISMATCH, PLT_COORDINATOR_NOT_REGISTERED */
  async register (): Promise<void> {
    const departures = this.#departures
    await this.#load.read()
    await this.#inTurn(async () => {
      if (departures !== this.#departures) throw notRegistered('deregister() or close() was called while register() was on its way')
      const { keyPrefix, memberIndex, strictFeatures } = this.#options
      const own = encodeFeature(memberIndex)
      const earlier = this.#standing
      // Open before the reply: when it does not come the record may be there all the same, and the heartbeats settle it.
      this.#standing = 'open'
      const reply = await this.#scripts.registerMember(this.writer, this.#record(), own, strictFeatures)
      if (reply.status === 'mismatch') {
        this.#standing = earlier
        throw featureMismatch(keyPrefix, reply.recordedIndex, own)
      }
      this.#registeredAt = reply.registeredAt
      this.#counted = reply.pending
      this.#locks.suspectAll()
      if (reply.recordedIndex !== own) this.#report(featureMismatch(keyPrefix, reply.recordedIndex, own))
    })
  }

  /** Never rejects; a second call while one is under way gets the same answer. */
  heartbeat (): Promise<boolean> {
    this.#beat ??= this.#sendBeat().finally(() => { this.#beat = undefined })
    return this.#beat
  }

  async setDraining (isDraining: boolean): Promise<boolean> {
    this.#isDraining = isDraining
    return await this.#inTurn(async () => {
      if (this.#standing !== 'open') return false
      const reply = await this.#scripts.heartbeat(this.writer, this.#record(), 0, this.#locks.ttlMs, [])
      if (reply.status === 'superseded') this.supersede()
      if (reply.status === 'restored') this.#locks.suspectAll()
      return reply.status !== 'superseded'
    })
  }

  async deregister (): Promise<boolean> {
    const wasIdle = this.#standing === 'idle'
    this.leave()
    if (wasIdle) return false
    return await this.#inTurn(async () => {
      const status = await this.#scripts.deregisterMember(this.writer)
      await this.#locks.releaseAll(this.writer)
      return status === 'deregistered'
    })
  }

  /** From this call on nothing is written but by a `register()` that comes later, which starts afresh. */
  leave (): void {
    this.#departures++
    this.#standing = 'left'
    this.#isDraining = false
    this.#load.stopWaiting()
  }

  /** Another process registered this memberId later: only `register()` makes this one write again. */
  supersede (): void {
    if (this.#standing !== 'open') return
    const { keyPrefix, memberId } = this.#options
    this.#standing = 'superseded'
    this.#locks.forget()
    publish('superseded', { keyPrefix, memberId, incarnation: this.#incarnation })
    this.#report(superseded(memberId))
  }

  async #sendBeat (): Promise<boolean> {
    const departures = this.#departures
    try {
      if (this.#standing === 'idle') throw notRegistered('heartbeat() was called before register()')
      if (this.#standing !== 'open') return false
      await this.#load.read()
      return await this.#inTurn(async () => departures === this.#departures && this.#standing === 'open' && await this.#writeBeat())
    } catch (error) {
      if (departures === this.#departures) this.#report(error as CoordinatorError)
      return false
    }
  }

  async #writeBeat (): Promise<boolean> {
    const { keyPrefix, memberId } = this.#options
    // Subtracted once: a beat whose reply is lost may have done it.
    const counted = this.#counted
    this.#counted = 0
    const { status, pending, registeredAt } = await this.#locks.beat(this.writer, this.#record(), counted)
    publish('heartbeat', { keyPrefix, memberId, status })
    if (status === 'superseded') {
      this.supersede()
      return false
    }
    this.#registeredAt = registeredAt
    this.#counted = pending
    return true
  }

  /**
   * One write to the record at a time. Two that overlap could swap places, when the first has to send its script's text again: a beat
   * that began before setDraining(true) would take the flag back, one that began before deregister() would revive the record.
   * A write whose turn does not come within `storeTimeout` is not made: behind a frozen store a queue would settle ever later.
   */
  async #inTurn<T> (write: () => Promise<T>): Promise<T> {
    const earlier = this.#lastWrite
    let passOn = (): void => {}
    this.#lastWrite = new Promise(resolve => { passOn = resolve })
    try {
      if (!await settlesWithin(earlier, this.#options.storeTimeoutMs)) {
        throw new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', 'Valkey is not available: an earlier write of this member is still waiting, so this one was not sent')
      }
      return await write()
    } finally {
      earlier.then(passOn)
    }
  }

  #record (): MemberRecord {
    const { address, ttlMs, loadPerBinding } = this.#options
    return { address, load: this.#load.last, isDraining: this.#isDraining, loadPerBinding, ttlMs }
  }
}

export function superseded (memberId: string): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_SUPERSEDED', `Another process registered the memberId '${memberId}' later`)
}

export function notRegistered (message: string): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_NOT_REGISTERED', message)
}
