import type { AllocationStrategy } from '../types.ts'

/** Takes the candidates in turn, in the order of their ids. */
export const roundRobin: AllocationStrategy = {
  pick: (candidates, { turn }) => candidates[turn % candidates.length] ?? null
}
