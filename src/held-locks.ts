/** A lock this pod minted: what it takes to write it again. */
export interface HeldLock {
  readonly lockId: string
  readonly destinationId: string
  /** Names and values of the application's fields, in turn. */
  readonly fields: string[]
}

/** The locks of one Member, in the order in which they were written or renewed, so that finding those due is a look at the front. */
export class HeldLocks {
  readonly #locks = new Map<string, { lock: HeldLock, renewedAt: number }>()

  get size (): number {
    return this.#locks.size
  }

  set (lock: HeldLock, renewedAt: number): void {
    this.#locks.delete(lock.lockId)
    this.#locks.set(lock.lockId, { lock, renewedAt })
  }

  get (lockId: string): HeldLock | undefined {
    return this.#locks.get(lockId)?.lock
  }

  wasRenewedBefore (lockId: string, time: number): boolean {
    const held = this.#locks.get(lockId)
    return held !== undefined && held.renewedAt < time
  }

  delete (lockId: string): void {
    this.#locks.delete(lockId)
  }

  clear (): void {
    this.#locks.clear()
  }

  /** Those last renewed before `time`, the longest waiting first, `count` at most. */
  listRenewedBefore (time: number, count: number): string[] {
    const lockIds: string[] = []
    for (const [lockId, { renewedAt }] of this.#locks) {
      if (renewedAt >= time || lockIds.length === count) break
      lockIds.push(lockId)
    }
    return lockIds
  }

  /** Notes that a lock was renewed, unless it was released meanwhile. */
  markRenewed (lockId: string, renewedAt: number): void {
    const lock = this.get(lockId)
    if (lock !== undefined) this.set(lock, renewedAt)
  }
}
