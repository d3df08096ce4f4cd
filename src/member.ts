import { randomUUID } from 'node:crypto'
import { BackgroundWork } from './background-work.ts'
import { Connection } from './connection.ts'
import type { CoordinatorError } from './errors.ts'
import { memberIndexOff } from './feature-check.ts'
import { buildKeys } from './keys.ts'
import { readAndPruneMembers, toMemberInfo } from './live-members.ts'
import { LoadSource } from './load-source.ts'
import { LockKeeper } from './lock-keeper.ts'
import { MemberScripts } from './member-scripts.ts'
import type { Writer } from './member-scripts.ts'
import { Membership, notRegistered, superseded } from './membership.ts'
import { checkBoolean, checkId, checkMemberOptions, encodeMetadata } from './options.ts'
import type { CheckedMemberOptions } from './options.ts'
import { Scripts } from './scripts.ts'
import { closedError } from './store-errors.ts'
import type { LockMetadata, MemberInfo, MemberOptions } from './types.ts'

/**
 * The pod side: one process's registration. Of two processes with one memberId the one that registered last is the member; what the
 * other sends from then on changes nothing. All methods but `heartbeat()` reject with `PLT_COORDINATOR_UNAVAILABLE` when Valkey does not
 * answer within `storeTimeout`, with `PLT_COORDINATOR_INVALID_ID` for an unusable id, and with `PLT_COORDINATOR_CLOSED` after `close()`.
 */
export class Member {
  readonly memberId: string
  readonly address: string
  /** Random name of this instance's life, written beside its record and its locks. */
  readonly incarnation = randomUUID()
  readonly #options: CheckedMemberOptions
  readonly #connection: Connection
  readonly #scripts: Scripts
  readonly #background: BackgroundWork
  readonly #locks: LockKeeper
  readonly #membership: Membership
  #closing: Promise<void> | undefined

  /** @throws PLT_COORDINATOR_INVALID_OPTION, PLT_COORDINATOR_NO_HASH_TAG before anything is opened */
  constructor (options: MemberOptions) {
    const checked = checkMemberOptions(options)
    this.#options = checked
    this.memberId = checked.memberId
    this.address = checked.address
    this.#connection = new Connection(checked)
    const keys = buildKeys(checked.keyPrefix, this.#connection.clientPrefix)
    const report = (error: CoordinatorError): void => this.#connection.report(error)
    this.#scripts = new Scripts(this.#connection, keys, checked.memberIndex)
    this.#background = new BackgroundWork(report)
    const scripts = new MemberScripts(this.#connection, keys)
    const load = new LoadSource(checked.getLoad, checked.ttlMs / 2, report)
    this.#locks = new LockKeeper(scripts, checked.ttlMs, report)
    this.#membership = new Membership({ options: checked, incarnation: this.incarnation, scripts, load, locks: this.#locks, report })
  }

  /**
   * Writes the record of this pod, which makes it live, and takes the memberId over from an earlier process. One round trip.
   * @throws PLT_COORDINATOR_FEATURE_MISMATCH with `strictFeatures`; PLT_COORDINATOR_NOT_REGISTERED when the member left meanwhile
   */
  async register (): Promise<void> {
    this.#refuseClosed()
    await this.#membership.register()
  }

  /**
   * Renews the record, or writes it again when it expired, with the load, the draining flag and the locks. Never rejects, so that
   * `setInterval(() => member.heartbeat(), …)` is safe; a second call while one is under way gets the same answer. One round trip, and
   * one more for each 100 locks beyond the first 100 that are due.
   * @returns false when nothing was renewed: Valkey is away, another process took the memberId, or the member is not registered
   */
  heartbeat (): Promise<boolean> {
    return this.#membership.heartbeat()
  }

  /**
   * Starts or ends draining: a draining pod keeps its destinations and gets no new ones. The flag survives an expired record and an
   * outage: the next heartbeat writes it. Set before `register()` it is written by that. `deregister()` ends it.
   * @returns whether the record says so now: false when this member is not registered, or another process took its memberId
   */
  async setDraining (draining: boolean): Promise<boolean> {
    checkBoolean('draining', draining)
    this.#refuseClosed()
    return await this.#membership.setDraining(draining)
  }

  /**
   * Adds this pod to a destination, for instance to share a hot one.
   * @returns false when this pod is draining or has no live record of its own: nothing is bound
   */
  async addToDestination (destinationId: string): Promise<boolean> {
    const status = await this.#changeOwn(destinationId, writer => this.#scripts.bind(destinationId, writer))
    return status === 'bound' || status === 'present'
  }

  /** Takes this pod from a destination; false when it was not bound, or the binding is that of its successor. */
  async removeFromDestination (destinationId: string): Promise<boolean> {
    return await this.#changeOwn(destinationId, writer => this.#scripts.unbind(destinationId, writer)) === 'unbound'
  }

  /**
   * Makes a lock resolve to this pod, in place of any earlier lock of that id. It lasts three times the ttl and is renewed by the
   * heartbeats; it stops resolving when this process ends.
   * @param metadata fields to store beside it; `podId`, `destinationId`, `incarnation` and `epoch` are reserved
   * @throws PLT_COORDINATOR_INVALID_METADATA, PLT_COORDINATOR_SUPERSEDED, PLT_COORDINATOR_NOT_REGISTERED after deregister()
   */
  async registerLock (lockId: string, destinationId: string, metadata: LockMetadata = {}): Promise<void> {
    checkId('lockId', lockId)
    checkId('destinationId', destinationId)
    const fields = encodeMetadata(metadata)
    this.#refuseClosed()
    const { standing, writer } = this.#membership
    if (standing === 'left') throw notRegistered('registerLock() was called after deregister()')
    if (standing === 'superseded') throw superseded(this.memberId)
    const status = await this.#locks.register(writer, { lockId, destinationId, fields })
    if (status === 'superseded') {
      this.#membership.supersede(writer)
      throw superseded(this.memberId)
    }
    // The clean-up of a deregister() called meanwhile may have come before the lock was known here.
    if (this.#membership.standing === 'left') await this.#locks.release(writer, lockId)
  }

  /** Ends a lock; false when it is not this process's (any more): that of another pod stays. */
  async unregisterLock (lockId: string): Promise<boolean> {
    checkId('lockId', lockId)
    this.#refuseClosed()
    return await this.#locks.release(this.#membership.writer, lockId)
  }

  /** Lists the live pods with their published loads, this one and draining ones included, by memberId. */
  async listPeerLoad (): Promise<MemberInfo[]> {
    this.#refuseClosed()
    const { live } = await readAndPruneMembers(this.#scripts, this.#background, this.#options.keyPrefix)
    return live.map(toMemberInfo)
  }

  /**
   * Lists the destinations bound to this pod, in no order.
   * @throws PLT_COORDINATOR_MEMBER_INDEX_OFF without `memberIndex: true`
   */
  async listOwned (): Promise<string[]> {
    if (!this.#options.memberIndex) throw memberIndexOff()
    this.#refuseClosed()
    return await this.#scripts.listOwned(this.memberId)
  }

  /**
   * Removes the record and the locks of this pod. From this call on no heartbeat writes; `register()` opens again. The destinations
   * stay bound and are reassigned by the next request that may.
   * @returns false when there was no record to remove, or another process took the memberId: its record stays
   */
  async deregister (): Promise<boolean> {
    this.#refuseClosed()
    return await this.#membership.deregister()
  }

  /**
   * Lets calls under way settle and closes the connection if it was opened here. The record stays until its ttl is over: call
   * `deregister()` first. May be called again.
   */
  close (): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close (): Promise<void> {
    this.#membership.leave()
    await this.#background.close()
    await this.#membership.settled
    await this.#connection.close()
  }

  async #changeOwn<S> (destinationId: string, change: (writer: Writer) => Promise<S | 'superseded'>): Promise<S | 'superseded'> {
    checkId('destinationId', destinationId)
    this.#refuseClosed()
    const { writer } = this.#membership
    const status = await change(writer)
    if (status === 'superseded') this.#membership.supersede(writer)
    return status
  }

  #refuseClosed (): void {
    if (this.#closing !== undefined) throw closedError()
  }
}
