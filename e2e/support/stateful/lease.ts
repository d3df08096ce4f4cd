import { subscribe } from 'node:diagnostics_channel'
import { diagnosticsChannels } from '@platformatic/coordinator'
import type { DiagnosticsEvents, Member } from '@platformatic/coordinator'

export interface LeaseOptions {
  member: Member
  ttlMs: number
  heartbeatMs: number
  /** The destinations whose state is in memory. */
  held: () => Iterable<string>
  /** Forgets the state of one destination. */
  drop: (destinationId: string) => void
}

/**
 * How long this process may serve from its memory, by its own monotonic clock, which goes on while the process is stopped. The lease runs
 * from the moment a good heartbeat was SENT, and Valkey counts the record's ttl from the moment it received it: so the lease ends first, and
 * while it lasts no registry gives what this pod holds to another.
 */
export class Lease {
  readonly #options: LeaseOptions
  /** A write that begins in the last moment has to be in PostgreSQL before another pod may read there. */
  readonly #lengthMs: number
  #endsAt = -Infinity
  #quietUntil = -Infinity
  /** The record was lost since the last comparison, or may have been. */
  #wasLost = false
  #isOver = false
  #term = 0
  #timer: NodeJS.Timeout | undefined
  #beat: Promise<void> | undefined

  constructor (options: LeaseOptions) {
    this.#options = options
    this.#lengthMs = 0.9 * options.ttlMs
    const { memberId } = options.member
    subscribe(diagnosticsChannels.heartbeat, message => {
      const { status } = message as DiagnosticsEvents['heartbeat']
      if (status === 'restored') this.#wasLost = true
    })
    subscribe(diagnosticsChannels.superseded, message => {
      if ((message as DiagnosticsEvents['superseded']).memberId === memberId) this.#end()
    })
  }

  async start (): Promise<void> {
    const sentAt = performance.now()
    await this.#options.member.register()
    this.#endsAt = sentAt + this.#lengthMs
    this.#timer = setInterval(() => { this.#beat ??= this.#sendBeat().finally(() => { this.#beat = undefined }) }, this.#options.heartbeatMs)
  }

  /** Sends no more heartbeats. What is held may be served until the lease ends. */
  async stop (): Promise<void> {
    clearInterval(this.#timer)
    await this.#beat
  }

  /** Tells whether memory may be used now; drops it the moment it may not. */
  isValid (): boolean {
    if (!this.#isOver && performance.now() <= this.#endsAt) return true
    this.#term++
    for (const destinationId of this.#options.held()) this.#options.drop(destinationId)
    return false
  }

  /** Changes whenever another pod may have served what is not in memory here: what was read in an earlier term is not for this one. */
  get term (): number {
    return this.#term
  }

  /**
   * True while nothing may be loaded that is not held. A record that was lost (the process was paused, Valkey came back empty) may have left
   * two pods with one destination in mind: the requests sent here before may still lie in a socket, and a pod that served it before us may
   * not have heard of it. One ttl later both are over: every other pod has compared what it holds, or its lease has ended.
   */
  isQuiet (): boolean {
    // From the beat that restored the record, and not only from the comparison after it: from then on others may claim for this pod.
    return this.#wasLost || performance.now() < this.#quietUntil
  }

  async #sendBeat (): Promise<void> {
    const { member, held, drop, ttlMs } = this.#options
    this.isValid()
    const sentAt = performance.now()
    try {
      if (!await member.heartbeat()) {
        this.#wasLost = true // whatever it was: its reply may be all that is missing
        return
      }
      // Those of before: what is claimed for us and loaded while the answer is on its way is not in it.
      const before = [...held()]
      const owned = new Set(await member.listOwned())
      for (const destinationId of before) {
        if (!owned.has(destinationId)) drop(destinationId)
      }
    } catch {
      this.#wasLost = true
      return
    }
    // Paused between the beat and now, the memory is no better than before: it is dropped here, and the lease begins with the beat.
    if (!this.isValid()) this.#wasLost = true
    if (this.#wasLost) {
      this.#term++
      this.#quietUntil = performance.now() + ttlMs
    }
    this.#wasLost = false
    this.#endsAt = sentAt + this.#lengthMs
  }

  /** Another process registered our memberId: what it holds we do not. */
  #end (): void {
    this.#isOver = true
    clearInterval(this.#timer)
    this.isValid()
  }
}
