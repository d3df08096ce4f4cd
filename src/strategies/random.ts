import type { AllocationStrategy } from '../types.ts'

/** Takes any candidate, each with the same chance. */
export const random: AllocationStrategy = {
  pick: (candidates, ctx) => candidates[Math.floor(ctx.random() * candidates.length)] ?? null
}
