import { BackgroundWork } from './background-work.ts'
import { BindingCache, byMemberId } from './binding-cache.ts'
import { ClaimTurns } from './claim-turns.ts'
import { Connection } from './connection.ts'
import { FeatureCheck, memberIndexOff } from './feature-check.ts'
import { buildKeys } from './keys.ts'
import { readAndPruneMembers, toMemberInfo } from './live-members.ts'
import type { LiveMembers } from './live-members.ts'
import { MemberView } from './member-view.ts'
import { areResolveOptions, checkId, checkPickMemberOptions, checkRegistryOptions, checkResolveOptions } from './options.ts'
import { Resolver } from './resolver.ts'
import type { Found } from './resolver.ts'
import { Scripts } from './scripts.ts'
import type { Incarnation } from './scripts.ts'
import { closedError } from './store-errors.ts'
import { toStrategy } from './strategies/create-strategy.ts'
import { pickCandidate } from './strategies/pick-candidate.ts'
import { Suspects } from './suspects.ts'
import type { AllocationStrategy, BoundPod, DeregisterOptions, MemberInfo, PickMemberOptions, RegistryOptions, ResolvedDestination, ResolvedLock, ResolveOptions } from './types.ts'

/**
 * The caller side: finds the pod that owns a destination, and gives it one where that is asked for. All methods reject with
 * `PLT_COORDINATOR_UNAVAILABLE` when Valkey does not answer within `storeTimeout`, with `PLT_COORDINATOR_INVALID_ID` for an id that no key
 * can be built from, and with `PLT_COORDINATOR_CLOSED` after `close()`.
 */
export class Registry {
  readonly #keyPrefix: string
  readonly #hasIndex: boolean
  readonly #connection: Connection
  readonly #scripts: Scripts
  readonly #strategy: AllocationStrategy
  readonly #cache: BindingCache<Found>
  readonly #view: MemberView
  readonly #turns: ClaimTurns
  readonly #suspects: Suspects
  readonly #background: BackgroundWork
  readonly #resolver: Resolver
  readonly #features: FeatureCheck
  readonly #random = Math.random
  readonly #now = (): number => performance.now()
  #closing: Promise<void> | undefined

  /** @throws PLT_COORDINATOR_INVALID_OPTION, PLT_COORDINATOR_NO_HASH_TAG before anything is opened */
  constructor (options: RegistryOptions) {
    const checked = checkRegistryOptions(options)
    const { keyPrefix, memberIndex } = checked
    this.#strategy = toStrategy('strategy', checked.strategy)
    const fanOutStrategy = toStrategy('fanOutStrategy', checked.fanOutStrategy)
    this.#keyPrefix = keyPrefix
    this.#hasIndex = memberIndex
    this.#connection = new Connection(checked)
    this.#scripts = new Scripts(this.#connection, buildKeys(keyPrefix, this.#connection.clientPrefix), memberIndex)
    this.#background = new BackgroundWork(error => this.#connection.report(error))
    this.#features = new FeatureCheck(this.#scripts, this.#background, checked, error => this.#connection.report(error), () => this.#connection.failureCount)
    this.#turns = new ClaimTurns(this.#random)
    this.#suspects = new Suspects(checked.suspectTimeMs, this.#now)
    this.#cache = new BindingCache({ cache: checked.cache, random: this.#random, now: this.#now })
    this.#view = new MemberView({
      read: () => this.#readMembers(),
      startRefresh: refresh => this.#background.start('refresh the members', refresh),
      now: this.#now
    })
    this.#resolver = new Resolver({
      keyPrefix,
      scripts: this.#scripts,
      cache: this.#cache,
      view: this.#view,
      strategy: this.#strategy,
      fanOutStrategy,
      turns: this.#turns,
      suspects: this.#suspects,
      background: this.#background,
      random: this.#random,
      now: this.#now
    })
  }

  /**
   * Finds the pod for a destination. Of any number of concurrent claims or reassignments, from any number of registries, one binding
   * results and all callers get it. Round trips: none on a cache hit, else one, shared by the callers that ask for the same
   * at the same time; a claim reads the list of members first when it is older than 5 s.
   * @returns null when the destination has no live pod and the flags allow none to be bound, or no pod can take it
   * @throws PLT_COORDINATOR_STRATEGY_FAILED, PLT_COORDINATOR_NOT_A_CANDIDATE when a pick was needed
   */
  resolveDestination (destinationId: string, options?: ResolveOptions): Promise<ResolvedDestination | null> {
    try {
      // Only checked ids are ever cached, so a hit needs no check of its own, and no turn of the event loop: it is made out at once.
      const cached = this.#closing === undefined && areResolveOptions(options) ? this.#cache.get(destinationId) : undefined
      if (cached !== undefined) return Promise.resolve(this.#resolver.answer(cached))
      return this.#resolveMiss(destinationId, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #resolveMiss (destinationId: string, options: ResolveOptions | undefined): Promise<ResolvedDestination | null> {
    const { claimOnMiss, reassignOrphans } = checkResolveOptions(options)
    checkId('destinationId', destinationId)
    await this.#ready()
    return await this.#resolver.read(destinationId, claimOnMiss, reassignOrphans)
  }

  /**
   * Finds the pod that holds a lock. Never cached: one round trip.
   * @returns null when there is no such lock, or its pod died or restarted since
   */
  async resolveLock (lockId: string): Promise<ResolvedLock | null> {
    checkId('lockId', lockId)
    await this.#ready()
    const held = await this.#scripts.resolveLock(lockId)
    return held && { address: held.address, memberId: held.memberId }
  }

  /** Lists the live pods, draining ones too, by memberId. One round trip for up to 100; at most 11 for 1,000. */
  async listLiveMembers (): Promise<MemberInfo[]> {
    await this.#ready()
    const sentAt = this.#now()
    const members = await this.#readMembers()
    const live = members.live.map(toMemberInfo)
    this.#view.replace(members, sentAt)
    return live
  }

  /**
   * Chooses a pod for something new and binds nothing. Always reads the members.
   * @returns null when no live pod takes anything new, or the strategy wants none
   */
  async pickMember (options: PickMemberOptions = {}): Promise<MemberInfo | null> {
    const { destinationId } = checkPickMemberOptions(options)
    await this.#ready()
    const candidates = this.#suspects.avoid(await this.#view.candidatesSince(this.#now()))
    const turn = this.#turns.take()
    const context = { ...(destinationId === undefined ? {} : { destinationId }), turn, random: this.#random }
    const pick = pickCandidate(this.#strategy, candidates, context)
    return pick && toMemberInfo(pick)
  }

  /**
   * Adds a pod to a destination.
   * @returns false when the pod is draining or has no live record: nothing is bound
   */
  async addPodToDestination (destinationId: string, memberId: string): Promise<boolean> {
    const status = await this.bindPod(destinationId, memberId)
    return status === 'bound' || status === 'present'
  }

  /**
   * As `addPodToDestination`, and tells what came of it.
   * @param options `ifBound: 'refuse'` binds only where no other pod, live or dead, is bound: else 'taken'
   */
  async bindPod (destinationId: string, memberId: string, options: { ifBound?: 'add' | 'refuse' } = {}): Promise<'bound' | 'present' | 'refused' | 'taken'> {
    const status = await this.#change(destinationId, memberId, pod => this.#scripts.bind(destinationId, pod, options.ifBound === 'refuse'))
    return status === 'superseded' ? 'refused' : status
  }

  /** Takes a pod, live or dead, from a destination; false when it was not bound to it. */
  async removePodFromDestination (destinationId: string, memberId: string): Promise<boolean> {
    return await this.#change(destinationId, memberId, pod => this.#scripts.unbind(destinationId, pod)) === 'unbound'
  }

  /** Tells whether the destination has any pod, live or dead. */
  async hasBinding (destinationId: string): Promise<boolean> {
    checkId('destinationId', destinationId)
    await this.#ready()
    return await this.#scripts.hasBinding(destinationId)
  }

  /** Lists the pods of a destination, live or dead, by memberId; past the cache, and nothing is written. */
  async readBinding (destinationId: string): Promise<BoundPod[]> {
    checkId('destinationId', destinationId)
    await this.#ready()
    const decision = await this.#scripts.resolveOne(destinationId)
    const live = decision.live.map((pod): BoundPod => ({ memberId: pod.memberId, isLive: true, member: toMemberInfo(pod) }))
    const dead = decision.dead.map((memberId): BoundPod => ({ memberId, isLive: false, member: null }))
    return [...live, ...dead].sort(byMemberId)
  }

  /** Forgets a destination with all its pods; false when it had none, or the condition does not hold. */
  async deregisterDestination (destinationId: string, options: DeregisterOptions = {}): Promise<boolean> {
    checkId('destinationId', destinationId)
    if (options.ifHolds !== undefined) checkId('memberId', options.ifHolds)
    await this.#ready()
    return await this.#evictingAround(destinationId, () => this.#scripts.deregisterDestination(destinationId, options)) > 0
  }

  /**
   * Lists the destinations of a pod, live or dead, in no order; what is bound or unbound while it reads may be missing or not.
   * @throws PLT_COORDINATOR_MEMBER_INDEX_OFF without `memberIndex: true`
   */
  async listOwned (memberId: string): Promise<string[]> {
    checkId('memberId', memberId)
    if (!this.#hasIndex) throw memberIndexOff()
    await this.#ready()
    return await this.#scripts.listOwned(memberId)
  }

  /** Forgets what is cached of a destination, for instance after its pod refused a connection. No round trip. */
  invalidateCache (destinationId: string): void {
    this.#cache.evict(destinationId)
  }

  /**
   * Tells that a pod refused a connection: what is cached of the destination is forgotten, and for `suspectTime` this registry prefers other
   * pods. The pod stays bound, and a destination that has no other is still sent to it. No round trip.
   */
  reportUnreachable (memberId: string, destinationId?: string): void {
    if (destinationId !== undefined) this.#cache.evict(destinationId)
    this.#suspects.add(memberId)
  }

  /** Lets calls and background work under way settle, then closes the connection if it was opened here. May be called again. */
  close (): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close (): Promise<void> {
    await this.#background.close()
    await this.#connection.close()
    this.#cache.clear()
  }

  /** What every call that asks Valkey waits for first: nothing, once the features were checked. */
  #ready (): Promise<void> | undefined {
    if (this.#closing !== undefined) throw closedError()
    return this.#features.ready()
  }

  async #change<T> (destinationId: string, memberId: string, change: (pod: Incarnation) => Promise<T>): Promise<T> {
    checkId('destinationId', destinationId)
    checkId('memberId', memberId)
    await this.#ready()
    return await this.#evictingAround(destinationId, () => change({ memberId, incarnation: '', registeredAt: '0' }))
  }

  /** Evicts when the write was answered and when it failed, since a failed write may have happened. */
  async #evictingAround<T> (destinationId: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } finally {
      this.#cache.evict(destinationId)
    }
  }

  #readMembers (): Promise<LiveMembers> {
    return readAndPruneMembers(this.#scripts, this.#background, this.#keyPrefix)
  }
}
