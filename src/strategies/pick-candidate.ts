import { CoordinatorError, describe } from '../errors.ts'
import type { AllocationStrategy, Candidate, StrategyContext } from '../types.ts'
import { leastLoaded } from './least-loaded.ts'
import { random } from './random.ts'
import { roundRobin } from './round-robin.ts'

const builtIn = new Set<AllocationStrategy>([roundRobin, leastLoaded, random])

/**
 * Asks a strategy and holds its answer against the candidates. A strategy of the user's gets copies, which it may sort or change.
 * @returns the candidate, or null when the strategy wants none of them
 * @throws PLT_COORDINATOR_STRATEGY_FAILED, PLT_COORDINATOR_NOT_A_CANDIDATE
 */
export function pickCandidate<C extends Candidate> (strategy: AllocationStrategy, candidates: C[], ctx: StrategyContext): C | null {
  if (candidates.length === 0) return null
  if (builtIn.has(strategy)) return strategy.pick(candidates, ctx) as C | null
  const pick = ask(strategy, candidates.map(toCandidate), ctx)
  if (pick === null || pick === undefined) return null
  const memberId: unknown = (pick as { memberId?: unknown }).memberId
  const candidate = candidates.find(candidate => candidate.memberId === memberId)
  if (candidate === undefined) {
    throw new CoordinatorError('PLT_COORDINATOR_NOT_A_CANDIDATE', `Expected the strategy to return one of its candidates or null at once, got ${describe(memberId ?? pick)}`)
  }
  return candidate
}

function toCandidate ({ memberId, address, load, pending, draining }: Candidate): Candidate {
  return { memberId, address, load, pending, draining }
}

function ask (strategy: AllocationStrategy, candidates: Candidate[], ctx: StrategyContext): unknown {
  try {
    return strategy.pick(candidates, ctx)
  } catch (error) {
    throw new CoordinatorError('PLT_COORDINATOR_STRATEGY_FAILED', 'The allocation strategy threw an error (see cause)', error)
  }
}
