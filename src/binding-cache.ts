import { LRUCache } from 'lru-cache'
import type { LivePod } from './decisions.ts'

/** Where a pod is. */
export interface Target {
  readonly memberId: string
  readonly address: string
}

/** The live pods of one destination, as of one read. */
export interface Binding {
  /** When it is not to be used any more. */
  readonly endsAt: number
  readonly destinationId: string
  /**
   * Where the choices are, in their order. Bindings share these objects: what the path of every request has to look into and lies elsewhere
   * in memory for each destination took half of the time of a hit.
   */
  readonly targets: readonly Target[]
  /** Those a request may go to: the ones that are not draining, or all when every one is. Sorted by memberId. */
  readonly choices: LivePod[]
  /** The draining pods beside them. */
  readonly draining: LivePod[]
  /** Counts the requests spread over several pods; shared by successive bindings of the destination. */
  readonly rotation: { turn: number }
}

/** A read of one destination on its way, which callers may join. */
export interface Reading<T> {
  readonly destinationId: string
  readonly joinKey: string
  /** Set by an eviction: its callers still get the answer, nobody else may. */
  isStale: boolean
  /** Null only while the read is being sent. */
  answer: Promise<T> | null
}

/** What a cache is made of. */
export interface BindingCacheOptions {
  /** Null keeps no bindings; reads in flight are joined all the same. */
  cache: { readonly ttlMs: number, readonly max: number } | null
  random: () => number
  /** Milliseconds on a monotonic clock. */
  now: () => number
}

const defaultMax = 10_000
// Pods whose targets are shared; of more than these some have several.
const maxTargets = 10_000

/** Bindings that were read lately, and the reads in flight. */
export class BindingCache<T> {
  readonly #ttlMs: number
  readonly #bindings: LRUCache<string, Binding> | null
  readonly #rotations: LRUCache<string, { turn: number }>
  readonly #targets = new LRUCache<string, Target>({ max: maxTargets })
  readonly #readings = new Map<string, Reading<T>>()
  readonly #random: () => number
  readonly #now: () => number

  constructor ({ cache, random, now }: BindingCacheOptions) {
    this.#ttlMs = cache?.ttlMs ?? 0
    // Without its own ttl: lru-cache asks the clock once a millisecond, by a timer, and after the event loop was blocked it still answers
    // with what ended meanwhile.
    this.#bindings = cache === null ? null : new LRUCache({ max: cache.max })
    this.#rotations = new LRUCache({ max: cache?.max ?? defaultMax })
    this.#random = random
    this.#now = now
  }

  get (destinationId: string): Binding | undefined {
    const binding = this.#bindings?.get(destinationId)
    if (binding === undefined || binding.endsAt > this.#now()) return binding
    this.#bindings?.delete(destinationId)
    return undefined
  }

  /** A read of the same destination with the same flags, unless it was sent before an eviction. */
  findReading (destinationId: string, flags: string): Reading<T> | undefined {
    return this.#readings.get(flags + destinationId)
  }

  /** Announces a read, to be joined until it is settled. */
  startReading (destinationId: string, flags: string, read: (reading: Reading<T>) => Promise<T>): Reading<T> {
    const reading: Reading<T> = { destinationId, joinKey: flags + destinationId, isStale: false, answer: null }
    this.#readings.set(reading.joinKey, reading)
    reading.answer = this.#settle(reading, read)
    return reading
  }

  async #settle (reading: Reading<T>, read: (reading: Reading<T>) => Promise<T>): Promise<T> {
    try {
      return await read(reading)
    } finally {
      if (this.#readings.get(reading.joinKey) === reading) this.#readings.delete(reading.joinKey)
    }
  }

  /**
   * Makes a binding of what a reading found, and keeps it unless an eviction came in between.
   * @param sentAt when the read was sent: the pods' remaining lives count from there at the latest
   */
  keep (reading: Reading<T>, live: LivePod[], sentAt: number): Binding {
    const { destinationId } = reading
    let lifeMs = this.#ttlMs
    for (const pod of live) lifeMs = Math.min(lifeMs, pod.remainingMs)
    // V8 keeps a number with a fraction in an object of its own, which the path of every request would have to look into.
    const endsAt = lifeMs < 1 ? sentAt + lifeMs : Math.floor(sentAt + lifeMs)
    const binding = this.#toBinding(destinationId, live, endsAt)
    if (this.#bindings !== null && !reading.isStale && endsAt > this.#now()) this.#bindings.set(destinationId, binding)
    return binding
  }

  /**
   * Forgets a destination. A read in flight may have been answered before the change that is the reason: it is neither cached nor
   * joined by later callers. The mark lives on the reading, so nothing is kept for ids that were evicted once.
   */
  evict (destinationId: string): void {
    this.#bindings?.delete(destinationId)
    for (const flags of readingFlags) {
      const reading = this.#readings.get(flags + destinationId)
      if (reading === undefined) continue
      reading.isStale = true
      this.#readings.delete(reading.joinKey)
    }
  }

  clear (): void {
    this.#bindings?.clear()
    for (const reading of this.#readings.values()) reading.isStale = true
    this.#readings.clear()
  }

  #toBinding (destinationId: string, live: LivePod[], endsAt: number): Binding {
    const ready = live.filter(pod => !pod.draining)
    const choices = ready.length > 0 ? ready : live
    if (choices.length > 1) choices.sort(byMemberId)
    const draining = choices.length === live.length ? noPods : live.filter(pod => pod.draining)
    return {
      endsAt,
      destinationId,
      targets: choices.map(pod => this.#target(pod)),
      choices,
      draining,
      rotation: live.length > 1 ? this.#rotation(destinationId) : noRotation
    }
  }

  #target ({ memberId, address }: LivePod): Target {
    const known = this.#targets.get(memberId)
    if (known?.address === address) return known
    const target = { memberId, address }
    this.#targets.set(memberId, target)
    return target
  }

  #rotation (destinationId: string): { turn: number } {
    let rotation = this.#rotations.get(destinationId)
    if (rotation === undefined) {
      rotation = { turn: Math.floor(this.#random() * 2 ** 20) }
      this.#rotations.set(destinationId, rotation)
    }
    return rotation
  }
}

const noRotation = { turn: 0 }
const noPods: LivePod[] = []

/** The ways a destination can be read; one character each, so that a join key is the id with one before it. */
export const readingFlags = ['0', '1', '2', '3'] as const

/** Sorts as plain text, the same on every machine. */
export function byMemberId (a: { memberId: string }, b: { memberId: string }): number {
  return a.memberId < b.memberId ? -1 : a.memberId > b.memberId ? 1 : 0
}
