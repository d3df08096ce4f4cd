import { isCoordinatorError } from './errors.ts'
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
  /** Locks whose first write is on its way. */
  readonly #minting = new Map<string, HeldLock>()
  /** True while any of them may have been lost with the record. */
  #areSuspect = false

  constructor (scripts: MemberScripts, memberTtlMs: number, report: (error: CoordinatorError) => void) {
    this.#scripts = scripts
    this.#memberTtlMs = memberTtlMs
    this.ttlMs = memberTtlMs * lockTtlPerMemberTtl
    this.#report = report
  }

  async register (writer: Writer, lock: HeldLock): Promise<'registered' | 'superseded'> {
    this.#minting.set(lock.lockId, lock)
    try {
      return await this.#write(writer, lock, () => this.#minting.get(lock.lockId) === lock)
    } finally {
      if (this.#minting.get(lock.lockId) === lock) this.#minting.delete(lock.lockId)
    }
  }

  /** Ends a lock; false when it was not the writer's. */
  async release (writer: Writer, lockId: string): Promise<boolean> {
    // Before the script is sent, or a beat that finds the lock gone, or a register() on its way, would keep it.
    this.#held.delete(lockId)
    this.#minting.delete(lockId)
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

  /** Goes by what a heartbeat found: forgets the locks others took over or ended, writes again those that can have expired or been lost. */
  async #settle (writer: Writer, lockIds: string[], reply: HeartbeatReply, sentAt: number): Promise<void> {
    const missing = new Set(reply.missingLockIds)
    for (const lockId of reply.lostLockIds) this.#held.delete(lockId)
    for (const lockId of lockIds) {
      if (!missing.has(lockId)) this.#held.markRenewed(lockId, sentAt)
    }
    await Promise.all(reply.missingLockIds.map(async lockId => {
      const lock = this.#held.get(lockId)
      if (lock === undefined || !writer.mayWrite()) return
      // One that can neither have expired nor been lost with the data was ended by somebody else.
      if (!this.#areSuspect && !this.#held.wasRenewedBefore(lockId, performance.now() - this.ttlMs)) return this.#held.delete(lockId)
      await this.#write(writer, lock, () => this.#held.get(lockId) === lock)
    }))
  }

  /**
   * Writes a lock and holds it, if it is still wanted when the reply comes. What was released meanwhile is released again: the script that
   * writes may have been sent a second time, with its text, behind the one that released.
   */
  async #write (writer: Writer, lock: HeldLock, isWanted: () => boolean): Promise<'registered' | 'superseded'> {
    const { lockId } = lock
    const sentAt = performance.now()
    let status: 'registered' | 'superseded'
    try {
      status = await this.#scripts.registerLock({ ...writer, mayWrite: () => writer.mayWrite() && isWanted() }, lock, this.ttlMs)
    } catch (error) {
      // Given up before its text was sent, because it was released meanwhile: as good as written and released.
      if (isCoordinatorError(error, 'PLT_COORDINATOR_NOT_REGISTERED') && writer.mayWrite()) return 'registered'
      throw error
    }
    if (status !== 'registered') return status
    if (isWanted()) this.#held.set(lock, sentAt)
    else if (!this.#minting.has(lockId) && this.#held.get(lockId) === undefined) await this.#scripts.releaseLocks(writer, [lockId])
    return status
  }
}
