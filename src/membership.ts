import { settlesWithin } from './connection.ts'
import { publish } from './diagnostics.ts'
import { CoordinatorError } from './errors.ts'
import { encodeFeature, featureMismatch } from './feature-check.ts'
import type { LoadSource } from './load-source.ts'
import type { LockKeeper } from './lock-keeper.ts'
import type { HeartbeatReply, MemberRecord, MemberScripts, Writer } from './member-scripts.ts'
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
  /** Rises with each register(), so that a late answer to what was sent before it is not held against it. */
  #registrations = 0
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
    const registrations = this.#registrations
    return {
      memberId: this.#options.memberId,
      incarnation: this.#incarnation,
      registeredAt: this.#registeredAt,
      mayWrite: () => departures === this.#departures,
      isLatest: () => registrations === this.#registrations
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
      this.#registrations++
      // Open before the reply: when it does not come the record may be there all the same, and the heartbeats settle it.
      this.#standing = 'open'
      const reply = await this.#scripts.registerMember(this.writer, this.#record(), strictFeatures)
      if (reply.status === 'mismatch') {
        if (departures === this.#departures) this.#standing = earlier
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
      const { writer } = this
      const reply = await this.#scripts.heartbeat(writer, this.#record(), 0, this.#locks.ttlMs, [])
      if (reply.status === 'superseded') this.supersede(writer)
      if (reply.status === 'restored') {
        this.#locks.suspectAll()
        this.#restored(reply)
      }
      return reply.status !== 'superseded'
    })
  }

  async deregister (): Promise<boolean> {
    const wasIdle = this.#standing === 'idle'
    this.leave()
    if (wasIdle) return false
    return await this.#inTurn(async () => {
      const status = await this.#scripts.deregisterMember(this.writer, this.#options.address)
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
  supersede (writer: Pick<Writer, 'isLatest'>): void {
    if (this.#standing !== 'open' || !writer.isLatest()) return
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
    const { writer } = this
    this.#counted = 0
    const reply = await this.#locks.beat(writer, this.#record(), counted)
    publish('heartbeat', { keyPrefix, memberId, status: reply.status })
    if (reply.status === 'superseded') {
      this.supersede(writer)
      return false
    }
    if (reply.status === 'restored') this.#restored(reply)
    this.#registeredAt = reply.registeredAt
    this.#counted = reply.pending
    return true
  }

  /** The record was gone, and with it perhaps all data: what was pending, and the recorded features. */
  #restored ({ recordedIndex }: HeartbeatReply): void {
    const { keyPrefix, memberIndex } = this.#options
    const own = encodeFeature(memberIndex)
    this.#counted = 0
    if (recordedIndex !== own) this.#report(featureMismatch(keyPrefix, recordedIndex, own))
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
    return { address, load: this.#load.last, isDraining: this.#isDraining, loadPerBinding, ttlMs, memberIndex: encodeFeature(this.#options.memberIndex) }
  }
}

export function superseded (memberId: string): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_SUPERSEDED', `Another process registered the memberId '${memberId}' later`)
}

export function notRegistered (message: string): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_NOT_REGISTERED', message)
}
