/**
 * What the routing core promises, told without Valkey: who is live, who may be bound, which pods a destination has. Where several pods
 * would do, a rule names all of them and the test says which was taken.
 */

/** One process of a pod. Two processes with one memberId are two incarnations of it; a record of other software has no process. */
export interface Process {
  readonly name: string
  readonly memberId: string
  standing: 'idle' | 'open' | 'superseded' | 'left'
  wantsDraining: boolean
  /** Rank of its last registration; the higher one of two processes is the newer. */
  rank: number
}

interface PodRecord {
  /** Null for a record that other software wrote. */
  writer: Process | null
  rank: number
  isDraining: boolean
}

export interface Flags {
  claimOnMiss: boolean
  reassignOrphans: boolean
}

/** What a resolve may answer and do. */
export type Verdict =
  /** Any of these pods, nothing bound anew. Dead pods beside them go away. */
  | { kind: 'serve', anyOf: string[] }
  /** Exactly one of these becomes the only pod. `previous`: the dead ones it replaces, null on a first touch. */
  | { kind: 'bind', anyOf: string[], previous: string[] | null }
  | { kind: 'none' }

export class Rules {
  readonly records = new Map<string, PodRecord>()
  readonly destinations = new Map<string, Set<string>>()
  #ranks = 0

  register (process: Process): void {
    process.standing = 'open'
    process.rank = ++this.#ranks
    this.#write(process)
  }

  /** A heartbeat, and likewise what setDraining writes. */
  beat (process: Process): boolean {
    if (process.standing !== 'open') return false
    if (this.#isHeldByNewer(process)) {
      process.standing = 'superseded'
      return false
    }
    this.#write(process)
    return true
  }

  setDraining (process: Process, wantsDraining: boolean): boolean {
    process.wantsDraining = wantsDraining
    return this.beat(process)
  }

  deregister (process: Process): boolean {
    const wasIdle = process.standing === 'idle'
    process.standing = 'left'
    process.wantsDraining = false
    if (wasIdle || this.#isHeldByNewer(process)) return false
    return this.records.delete(process.memberId)
  }

  /** Other software writes address and load with a ttl; fields it does not know stay. */
  writePlainly (memberId: string, isDraining?: boolean): void {
    const record = this.records.get(memberId) ?? { writer: null, rank: 0, isDraining: false }
    this.records.set(memberId, { ...record, isDraining: isDraining ?? record.isDraining })
  }

  expire (memberId: string): void {
    this.records.delete(memberId)
  }

  isLive (memberId: string): boolean {
    return this.records.has(memberId)
  }

  takesNew (memberId: string): boolean {
    return this.records.get(memberId)?.isDraining === false
  }

  live (): { memberId: string, draining: boolean }[] {
    return [...this.records].map(([memberId, { isDraining }]) => ({ memberId, draining: isDraining }))
      .sort((a, b) => a.memberId < b.memberId ? -1 : 1)
  }

  podsOf (destinationId: string): string[] {
    return [...this.destinations.get(destinationId) ?? []].sort()
  }

  /** @param process the pod's own process when it adds itself, null when a registry adds it */
  add (destinationId: string, memberId: string, process: Process | null = null): boolean {
    if (process !== null && this.#isHeldByAnother(process)) {
      this.#learn(process)
      return false
    }
    if (!this.takesNew(memberId)) return false
    this.destinations.set(destinationId, new Set([...this.podsOf(destinationId), memberId]))
    return true
  }

  remove (destinationId: string, memberId: string, process: Process | null = null): boolean {
    // An earlier process's record stands in for one that expired: the binding is the newer process's all the same.
    if (process !== null && this.#isHeldByNewer(process)) {
      this.#learn(process)
      return false
    }
    const pods = this.destinations.get(destinationId)
    if (pods === undefined || !pods.delete(memberId)) return false
    if (pods.size === 0) this.destinations.delete(destinationId)
    return true
  }

  forget (destinationId: string): boolean {
    return this.destinations.delete(destinationId)
  }

  /** The table of the contract. */
  judge (destinationId: string, { claimOnMiss, reassignOrphans }: Flags): Verdict {
    const pods = this.podsOf(destinationId)
    const live = pods.filter(memberId => this.isLive(memberId))
    if (live.length > 0) return { kind: 'serve', anyOf: this.preferred(live) }
    const mayBind = pods.length === 0 ? claimOnMiss : reassignOrphans
    const anyOf = [...this.records.keys()].filter(memberId => this.takesNew(memberId))
    if (!mayBind || anyOf.length === 0) return { kind: 'none' }
    return { kind: 'bind', anyOf, previous: pods.length === 0 ? null : pods }
  }

  /** Of live pods those that do not drain, unless all do. */
  preferred (live: string[]): string[] {
    const ready = live.filter(memberId => this.takesNew(memberId))
    return ready.length > 0 ? ready : live
  }

  bind (destinationId: string, memberId: string): void {
    this.destinations.set(destinationId, new Set([memberId]))
  }

  prune (destinationId: string): void {
    const live = this.podsOf(destinationId).filter(memberId => this.isLive(memberId))
    if (live.length > 0) this.destinations.set(destinationId, new Set(live))
  }

  #write (process: Process): void {
    this.records.set(process.memberId, { writer: process, rank: process.rank, isDraining: process.wantsDraining })
  }

  /** A process that is answered "superseded" writes no more. */
  #learn (process: Process): void {
    if (process.standing === 'open' && this.#isHeldByNewer(process)) process.standing = 'superseded'
  }

  #isHeldByAnother ({ memberId, name }: Process): boolean {
    const writer = this.records.get(memberId)?.writer
    return writer !== undefined && writer !== null && writer.name !== name
  }

  #isHeldByNewer (process: Process): boolean {
    return this.#isHeldByAnother(process) && (this.records.get(process.memberId)?.rank ?? 0) > process.rank
  }
}
