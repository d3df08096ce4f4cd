import type { Candidate, StrategyContext } from '../../src/types.ts'

export function candidate (memberId: string, load = 0, pending = 0, draining = false): Candidate {
  return { memberId, address: `http://${memberId}`, load, pending, draining }
}

export function context (given: Partial<StrategyContext> = {}): StrategyContext {
  return { turn: 0, random: () => 0, ...given }
}
