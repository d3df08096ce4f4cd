import type { CoordinatorError } from './errors.ts'
import { HeldLocks } from './held-locks.ts'
import type { HeldLock } from './held-locks.ts'
import type { HeartbeatReply, MemberRecord, MemberScripts, Writer } from './member-scripts.ts'

// Locks a script touches; 1,000 would hold the server for over two milliseconds.
const locksAtOnce = 100
const lockTtlPerMemberTtl = 3

/** Keeps the locks of one Member alive beside its heartbeats. */
export class LockKeeper {
  /** Milliseconds a lock outlives its last renewal. */
  readonly ttlMs: number
  readonly #memberTtlMs: number
  readonly #scripts: MemberScripts
  readonly #report: (error: CoordinatorError) => void
  readonly #held = new HeldLocks()
  /** True while any of them may have been lost with the record. */
  #areSuspect = false

  constructor (scripts: MemberScripts, memberTtlMs: number, report: (error: CoordinatorError) => void) {
    this.#scripts = scripts
    this.#memberTtlMs = memberTtlMs
    this.ttlMs = memberTtlMs * lockTtlPerMemberTtl
    this.#report = report
  }

  async register (writer: Writer, lock: HeldLock): Promise<'registered' | 'superseded'> {
    const sentAt = performance.now()
    const status = await this.#scripts.registerLock(writer, lock.lockId, lock.destinationId, this.ttlMs, lock.fields)
    if (status === 'registered') this.#held.set(lock, sentAt)
    return status
  }

  /** Ends a lock; false when it was not the writer's. */
  async release (writer: Writer, lockId: string): Promise<boolean> {
    // Before the script is sent, or a beat that finds the lock gone would write it again.
    this.#held.delete(lockId)
    return await this.#scripts.releaseLocks(writer, [lockId]) > 0
  }

  async releaseAll (writer: Writer): Promise<void> {
    const lockIds = this.#held.listRenewedBefore(Infinity, Infinity)
    this.#held.clear()
    for (let from = 0; from < lockIds.length; from += locksAtOnce) await this.#scripts.releaseLocks(writer, lockIds.slice(from, from + locksAtOnce))
  }

  /** Has the next beat look at every lock: the record was found gone, or written by somebody else. */
  suspectAll (): void {
    if (this.#held.size > 0) this.#areSuspect = true
  }

  forget (): void {
    this.#held.clear()
  }

  /**
   * Sends the heartbeat with the first 100 locks that are due, once a member ttl each, then the rest. When the record had expired all
   * of them are due: the locks may have been lost with it.
   */
  async beat (writer: Writer, record: MemberRecord, counted: number): Promise<HeartbeatReply> {
    const sentAt = performance.now()
    let lockIds = this.#held.listRenewedBefore(sentAt - this.#memberTtlMs, locksAtOnce)
    const wereSuspect = this.#areSuspect
    this.#areSuspect = true // until this beat is answered: the answer that is lost may be the one that says so
    const first = await this.#scripts.heartbeat(writer, record, counted, this.ttlMs, lockIds)
    if (first.status === 'superseded') return first
    this.#areSuspect = wereSuspect || first.status === 'restored'
    const dueBefore = this.#areSuspect ? sentAt : sentAt - this.#memberTtlMs
    try {
      await this.#settle(writer, lockIds, first, sentAt)
      while (writer.mayWrite() && (lockIds = this.#held.listRenewedBefore(dueBefore, locksAtOnce)).length > 0) {
        const next = await this.#scripts.heartbeat(writer, record, 0, this.ttlMs, lockIds)
        if (next.status === 'superseded') return next
        await this.#settle(writer, lockIds, next, sentAt)
      }
      this.#areSuspect = false
    } catch (error) {
      // The record was renewed; the locks that are left stay due.
      if (writer.mayWrite()) this.#report(error as CoordinatorError)
    }
    return first
  }

  /** Goes by what a heartbeat found: forgets the locks others took over, writes those that expired again. */
  async #settle (writer: Writer, lockIds: string[], reply: HeartbeatReply, sentAt: number): Promise<void> {
    const missing = new Set(reply.missingLockIds)
    for (const lockId of reply.lostLockIds) this.#held.delete(lockId)
    for (const lockId of lockIds) {
      if (!missing.has(lockId)) this.#held.markRenewed(lockId, sentAt)
    }
    await Promise.all(reply.missingLockIds.map(async lockId => {
      const lock = this.#held.get(lockId)
      if (lock === undefined || !writer.mayWrite()) return
      await this.#scripts.registerLock(writer, lockId, lock.destinationId, this.ttlMs, lock.fields)
      this.#held.markRenewed(lockId, sentAt)
    }))
  }
}
