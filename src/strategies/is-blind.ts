import type { AllocationStrategy } from '../types.ts'
import type { BlindStrategy } from './blind-strategy.ts'
import { random } from './random.ts'
import { roundRobin } from './round-robin.ts'

/** Whether it is one of ours that goes by the number of candidates alone; one of the user's is asked in full. */
export function isBlind (strategy: AllocationStrategy): strategy is BlindStrategy {
  return strategy === roundRobin || strategy === random
}
