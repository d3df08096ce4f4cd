import type { AllocationStrategy, Candidate, StrategyContext } from '../types.ts'
import { rankedLoad } from './ranked-load.ts'

/** A strategy whose pick the claim script may replace by another of the shortlist, going by the figures of that moment. */
export interface LoadAwareStrategy extends AllocationStrategy {
  /** The pick, then alternates: `count` candidates in all, or as many as there are. */
  shortlist (candidates: readonly Candidate[], ctx: StrategyContext, count: number): Candidate[]
}

/** Takes the candidate with the smallest load, bindings not yet counted in it included; equal ones in turn. */
export const leastLoaded: LoadAwareStrategy = {
  pick: (candidates, ctx) => takeLeast(candidates, ctx.turn),

  /**
   * The alternates are drawn at random, not the next best: many claims in flight, of many registries, see the same few pods as the best,
   * and all of them would land there. Of 10 fresh pods among 100 the next best took up to 5 times the load of a perfect
   * placement (16 registries, 64 claims in flight each), random ones 1.04 times; see "The Power of Two Choices", Mitzenmacher 1996.
   */
  shortlist (candidates, ctx, count) {
    const best = takeLeast(candidates, ctx.turn)
    if (best === null) return []
    if (candidates.length <= count) return [best, ...candidates.filter(candidate => candidate !== best)]
    const list = [best]
    while (list.length < count) {
      let at = Math.floor(ctx.random() * candidates.length)
      while (list.includes(candidates[at] as Candidate)) at = (at + 1) % candidates.length
      list.push(candidates[at] as Candidate)
    }
    return list
  }
}

export function isLoadAware (strategy: AllocationStrategy): strategy is LoadAwareStrategy {
  return strategy === leastLoaded
}

function takeLeast (candidates: readonly Candidate[], turn: number): Candidate | null {
  let least = Infinity
  let equals = 0
  for (const candidate of candidates) {
    const load = rankedLoad(candidate)
    if (load < least) {
      least = load
      equals = 1
    } else if (load === least) {
      equals++
    }
  }
  let skip = turn % equals
  return candidates.find(candidate => rankedLoad(candidate) === least && skip-- === 0) ?? null
}
