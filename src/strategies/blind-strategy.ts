import type { AllocationStrategy } from '../types.ts'

/** A strategy that looks at nothing of its candidates but how many they are. */
export interface BlindStrategy extends AllocationStrategy {
  /** The place of the one that `pick` would take among `count`, from 0. */
  pickIndex (count: number, turn: number, random: () => number): number
}
