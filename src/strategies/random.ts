import type { BlindStrategy } from './blind-strategy.ts'

/** Takes any candidate, each with the same chance. */
export const random: BlindStrategy = {
  pick: (candidates, ctx) => candidates[Math.floor(ctx.random() * candidates.length)] ?? null,
  pickIndex: (count, _turn, random) => Math.floor(random() * count)
}
