import type { AllocationStrategy, Candidate, StrategyContext } from '../types.ts'
import { rankedLoad } from './ranked-load.ts'

/** A strategy whose pick the claim script may replace by a better one of the shortlist, going by the figures of that moment. */
export interface LoadAwareStrategy extends AllocationStrategy {
  /** The best candidates, best first, at most `count`. */
  shortlist (candidates: readonly Candidate[], ctx: StrategyContext, count: number): Candidate[]
}

/** Takes the candidate with the smallest load, bindings not yet counted in it included; equal ones in turn. */
export const leastLoaded: LoadAwareStrategy = {
  pick: (candidates, ctx) => leastLoaded.shortlist(candidates, ctx, 1)[0] ?? null,

  shortlist (candidates, { turn }, count) {
    const best: Candidate[] = []
    const loads: number[] = []
    // Starting at the turn and taking only what is strictly less gives equal loads their turn.
    for (let step = 0; step < candidates.length; step++) {
      const candidate = candidates[(turn + step) % candidates.length] as Candidate
      const load = rankedLoad(candidate)
      let at = best.length
      while (at > 0 && load < (loads[at - 1] as number)) at--
      if (at >= count) continue
      best.splice(at, 0, candidate)
      loads.splice(at, 0, load)
      if (best.length > count) {
        best.pop()
        loads.pop()
      }
    }
    return best
  }
}

export function isLoadAware (strategy: AllocationStrategy): strategy is LoadAwareStrategy {
  return strategy === leastLoaded
}
