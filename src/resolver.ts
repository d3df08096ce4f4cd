import type { BackgroundWork } from './background-work.ts'
import type { Binding, BindingCache, Reading, Target } from './binding-cache.ts'
import type { ClaimTurns } from './claim-turns.ts'
import type { Decision, Figures, LivePod } from './decisions.ts'
import { publish } from './diagnostics.ts'
import { isCoordinatorError } from './errors.ts'
import type { MemberView } from './member-view.ts'
import type { Scripts } from './scripts.ts'
import { isBlind } from './strategies/is-blind.ts'
import type { BlindStrategy } from './strategies/blind-strategy.ts'
import { isLoadAware } from './strategies/least-loaded.ts'
import { pickCandidate } from './strategies/pick-candidate.ts'
import type { Suspects } from './suspects.ts'
import type { AllocationStrategy, Candidate, ResolvedDestination, StrategyContext } from './types.ts'

/** What a read found; null when no pod serves the destination. */
export type Found = { readonly binding: Binding, readonly previous: string[] | null } | null

export interface ResolverOptions {
  keyPrefix: string
  scripts: Scripts
  cache: BindingCache<Found>
  view: MemberView
  /** Chooses the pod that a destination is bound to. */
  strategy: AllocationStrategy
  /** Chooses, for a request, among the pods of a destination. */
  fanOutStrategy: AllocationStrategy
  turns: ClaimTurns
  suspects: Suspects
  background: BackgroundWork
  random: () => number
  now: () => number
}

// Members offered to the script by a load-aware strategy: its pick and two alternates.
const shortlistSize = 3
// Views read again after a refusal before the call gives up: each needs every candidate offered to die or drain in between.
const maxAttempts = 6
// Pods a script reads within about a millisecond.
const largestUsualSet = 50

/** Finds the pod for a destination: from the cache, from a read on its way, or by one script that also claims where that is allowed. */
export class Resolver {
  readonly #options: ResolverOptions
  readonly #suspects: Suspects
  #latestFigures: Figures[] = []
  /** The fan-out strategy, if it goes by the number of pods alone: then nothing else of them needs to be looked at. */
  readonly #blindStrategy: BlindStrategy | null

  constructor (options: ResolverOptions) {
    this.#options = options
    this.#suspects = options.suspects
    this.#blindStrategy = isBlind(options.fanOutStrategy) ? options.fanOutStrategy : null
  }

  /** Joins or sends the read that answers, then picks for this caller alone. */
  async read (destinationId: string, claimOnMiss: boolean, reassignOrphans: boolean): Promise<ResolvedDestination | null> {
    const { cache } = this.#options
    const flags = claimOnMiss ? reassignOrphans ? '3' : '2' : reassignOrphans ? '1' : '0'
    const joined = cache.findReading(destinationId, flags)?.answer
    if (joined) {
      const found = await joined
      return found && this.answer(found.binding)
    }
    const found = await cache.startReading(destinationId, flags, reading => {
      return flags === '0' ? this.#resolve(reading) : this.#claim(reading, claimOnMiss, reassignOrphans)
    }).answer
    const answer = found && this.answer(found.binding)
    return answer && found?.previous ? { ...answer, reassigned: true, previous: found.previous } : answer
  }

  /** Picks among the pods of a binding, by the fan-out strategy where there are several. */
  answer (binding: Binding): ResolvedDestination | null {
    const { targets, rotation } = binding
    if (!this.#suspects.isEmpty || (targets.length > 1 && this.#blindStrategy === null)) return this.#answerAmong(binding)
    const index = targets.length === 1 || this.#blindStrategy === null ? 0 : this.#blindStrategy.pickIndex(targets.length, rotation.turn++, this.#options.random)
    const { address, memberId } = targets[index] as Target
    return { address, memberId, reassigned: false }
  }

  #answerAmong ({ destinationId, choices, draining, rotation }: Binding): ResolvedDestination | null {
    const { fanOutStrategy, suspects } = this.#options
    const trusted = suspects.avoid(choices, draining)
    const pod = trusted.length === 1 ? trusted[0] as LivePod : pickCandidate(fanOutStrategy, trusted, this.#context(destinationId, rotation.turn++))
    if (pod === null) return null
    const { address, memberId } = pod
    return { address, memberId, reassigned: false }
  }

  async #resolve (reading: Reading<Found>): Promise<Found> {
    const { scripts, now } = this.#options
    const sentAt = now()
    return this.#keep(reading, await scripts.resolveOne(reading.destinationId), sentAt)
  }

  async #claim (reading: Reading<Found>, claimOnMiss: boolean, reassignOrphans: boolean): Promise<Found> {
    const { scripts, view, turns, now } = this.#options
    const { destinationId } = reading
    const refused = new Set<string>()
    const turn = turns.take()
    let isTurnUsed = false
    try {
      const calledAt = now()
      let candidates = await view.candidates()
      for (let attempt = 1; ; attempt++) {
        const offer = this.#offer(candidates, refused, destinationId, turn)
        const sentAt = now()
        const decision = await scripts.claimOne({ destinationId, claimOnMiss, reassignOrphans, memberIds: offer.memberIds })
        this.#takeFigures(decision.figures)
        isTurnUsed = decision.status === 'claimed' || decision.status === 'reassigned'
        if (decision.status !== 'refused') return this.#keep(reading, decision, sentAt)
        // A pod was needed. The pick was made on the assumption that it might be; only now does its failure matter.
        if (offer.error !== undefined) throw offer.error
        const hasNothingToOffer = offer.memberIds.length === 0 && view.readAt >= calledAt
        if (hasNothingToOffer || attempt === maxAttempts) return null
        for (const memberId of offer.memberIds) refused.add(memberId)
        candidates = await view.candidatesSince(now())
      }
    } catch (error) {
      // The claim may have been made all the same, so nothing read before it may be used.
      if (isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')) this.#options.cache.evict(destinationId)
      throw error
    } finally {
      if (!isTurnUsed) turns.giveBack(turn)
    }
  }

  /** The members to send with a claim, best first. A strategy that is not load-aware sends its pick alone, never a second choice. */
  #offer (candidates: Candidate[], refused: ReadonlySet<string>, destinationId: string, turn: number): { memberIds: string[], error?: unknown } {
    const { strategy, suspects } = this.#options
    const left = suspects.avoid(refused.size === 0 ? candidates : candidates.filter(({ memberId }) => !refused.has(memberId)))
    const context = this.#context(destinationId, turn)
    if (isLoadAware(strategy)) return { memberIds: strategy.shortlist(left, context, shortlistSize).map(({ memberId }) => memberId) }
    try {
      const pick = pickCandidate(strategy, left, context)
      return { memberIds: pick === null ? [] : [pick.memberId] }
    } catch (error) {
      return { memberIds: [], error }
    }
  }

  /** Decisions of one call bring the same list. */
  #takeFigures (figures: Figures[]): void {
    if (figures !== this.#latestFigures) this.#options.view.update(figures)
    this.#latestFigures = figures
  }

  #keep (reading: Reading<Found>, { status, live, dead }: Decision, sentAt: number): Found {
    const { keyPrefix, cache, background } = this.#options
    const { destinationId } = reading
    const podCount = live.length + dead.length
    if (podCount > largestUsualSet) publish('oversized', { keyPrefix, destinationId, count: podCount })
    if (live.length === 0) return null
    if (status === 'bound' && dead.length > 0) background.start(`prune ${destinationId}`, () => this.#prune(destinationId))
    return { binding: cache.keep(reading, live, sentAt), previous: status === 'reassigned' ? dead : null }
  }

  async #prune (destinationId: string): Promise<void> {
    const { keyPrefix, scripts } = this.#options
    const count = await scripts.prune(destinationId)
    if (count > 0) publish('prune', { keyPrefix, destinationId, count })
  }

  #context (destinationId: string, turn: number): StrategyContext {
    return { destinationId, turn, random: this.#options.random }
  }
}
