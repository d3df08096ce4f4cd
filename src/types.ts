import type { Cluster, Redis, RedisOptions } from 'iovalkey'
import type { CoordinatorError } from './errors.ts'

/** A client of iovalkey: a single connection (Sentinel included) or a Cluster. */
export type StoreClient = Redis | Cluster

/** A live pod as its record in Valkey says. */
export interface MemberInfo {
  memberId: string
  /** Base URL of the pod, as the pod gave it. */
  address: string
  /** What the pod published last; NaN when it could not tell. */
  load: number
  /** True while the pod takes nothing new. */
  draining: boolean
}

/** A member offered to a strategy. */
export interface Candidate extends MemberInfo {
  /** Load of the bindings made since the pod's heartbeat counted them; add it to `load`. */
  pending: number
}

/** What a strategy may base its pick on besides the candidates. */
export interface StrategyContext {
  /** The destination to place or to route; absent for `pickMember()` without one. */
  destinationId?: string
  /**
   * Counts the claims this registry made (first touch, reassignment, `pickMember`), or the requests for this destination
   * on fan-out. Starts at a random value, so that registries do not all begin with the same pod.
   */
  turn: number
  /** Uniform in [0, 1). Use it in place of `Math.random`, so that a test can decide it. */
  random: () => number
}

/**
 * Chooses one candidate. Must be pure: no I/O, no clock, no state between calls. The candidates are live, not draining
 * (on fan-out a draining pod is offered when there is no other), and sorted by memberId.
 */
export interface AllocationStrategy {
  /** Returns one of `candidates`, or null when none will do; anything else rejects the call. */
  pick (candidates: Candidate[], ctx: StrategyContext): MemberInfo | null | undefined
}

/** Names of the built-in strategies. */
export type StrategyName = 'round-robin' | 'least-loaded' | 'random'

/** What resolveDestination may change on its way. */
export interface ResolveOptions {
  /** Bind a live pod when the destination has none. @defaultValue false */
  claimOnMiss?: boolean | undefined
  /** Replace the pods of a destination when all of them are dead. @defaultValue false */
  reassignOrphans?: boolean | undefined
}

/** The pod a request for the destination goes to. */
export interface ResolvedDestination {
  address: string
  memberId: string
  /** True for the one caller whose call replaced dead pods. */
  reassigned: boolean
  /** The dead pods that were replaced; only with `reassigned`. */
  previous?: string[]
}

/** The pod that holds a lock. */
export interface ResolvedLock {
  address: string
  memberId: string
}

/** A condition, looked at in the same script, on forgetting a destination. */
export interface DeregisterOptions {
  /** Only if this pod is still one of its pods. */
  ifHolds?: string | undefined
  /** Only if all its pods are dead. */
  ifOrphaned?: boolean | undefined
}

/** A pod of a destination's set: live with its record, or dead without one. */
export type BoundPod =
  | { memberId: string, isLive: true, member: MemberInfo }
  | { memberId: string, isLive: false, member: null }

/** What pickMember tells the strategy. */
export interface PickMemberOptions {
  /** Handed to the strategy as `ctx.destinationId`. */
  destinationId?: string | undefined
}

/** Bounds of the local cache. */
export interface CacheOptions {
  /** Milliseconds an answer is used without asking Valkey; 0 turns the cache off. @defaultValue 5000 */
  ttl?: number | undefined
  /** Destinations kept, 1,048,576 at most; the least recently used leaves first; 0 turns the cache off. @defaultValue 10000 */
  max?: number | undefined
}

/** What Registry and Member have in common. */
export interface StoreOptions {
  /**
   * URL (`redis:`, `rediss:`, `valkey:`, `valkeys:`, `unix:`, or the path of a unix socket), for which an own connection is opened
   * and closed by `close()`; or a client of iovalkey, which is shared and left open.
   */
  redis: string | StoreClient
  /** Options of the connection opened for a URL. */
  redisOptions?: RedisOptions | undefined
  /** Starts every key, and the channel. On a cluster it needs a hash tag: `{myservice}`. @defaultValue 'coordinator' */
  keyPrefix?: string | undefined
  /** Keep the set `owned:<memberId>` exact beside each binding; every writer of the prefix must agree. @defaultValue false */
  memberIndex?: boolean | undefined
  /** Throw when the prefix is in use with other features, instead of only reporting it. @defaultValue false */
  strictFeatures?: boolean | undefined
  /** Milliseconds one round trip to Valkey may take before it fails with `PLT_COORDINATOR_UNAVAILABLE`. @defaultValue 2000 */
  storeTimeout?: number | undefined
  /** Hears of what no caller is told: lost connections, failed background work. Its own throwing costs nothing. */
  onError?: ((error: CoordinatorError) => unknown) | undefined
}

/** Options of a Registry. */
export interface RegistryOptions extends StoreOptions {
  /** How a pod is chosen. @defaultValue 'round-robin' */
  strategy?: StrategyName | AllocationStrategy | undefined
  /** How one of several pods of a destination is chosen for a request, where that is to differ. @defaultValue what `strategy` says */
  fanOutStrategy?: StrategyName | AllocationStrategy | undefined
  /** Milliseconds for which a pod that refused a connection is passed over where there is another. @defaultValue 1000 */
  suspectTime?: number | undefined
  /** The local cache of bindings; false turns it off. */
  cache?: CacheOptions | false | undefined
}

/** Options of a Member. */
export interface MemberOptions extends StoreOptions {
  /** Name of this pod, unique among the live ones: 1 to 256 bytes. A later process of the same name takes it over. */
  memberId: string
  /** URL under which the coordinators reach this pod. */
  address: string
  /** Seconds a record outlives its last heartbeat, fractions allowed; at least twice the interval. @defaultValue 30 */
  ttl?: number | undefined
  /**
   * The load to publish, read at each heartbeat; any unit, smaller is idler. May be async, and is given half the ttl. When it
   * throws or takes longer the last good load stands; a value that is no finite number ranks behind every number.
   * @defaultValue () => 0
   */
  getLoad?: (() => number | Promise<number>) | undefined
  /** What one new destination adds to the load, in its unit, fractions allowed; 0 or more. @defaultValue 1 */
  loadPerBinding?: number | undefined
}

/** Application fields of a lock, a plain object: strings are stored as they are, other values as JSON, undefined is left out. */
export type LockMetadata = object
