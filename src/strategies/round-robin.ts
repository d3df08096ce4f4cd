import type { BlindStrategy } from './blind-strategy.ts'

/** Takes the candidates in turn, in the order of their ids. */
export const roundRobin: BlindStrategy = {
  pick: (candidates, { turn }) => candidates[turn % candidates.length] ?? null,
  pickIndex: (count, turn) => turn % count
}
