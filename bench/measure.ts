/** Does `count` operations of one kind, 64 at once, and resolves when all are done. */
export type Workload = (count: number) => Promise<unknown>

export interface Comparison {
  name: string
  /** What the figure is held against. */
  limit: string
  rounds: number
  operations: number
  /** Rate of the measured thing over that of the limit, in the same round: median, least, most. */
  ratio: { median: number, min: number, max: number }
  /** Operations a second, median. */
  rate: number
  limitRate: number
}

/** Runs the two in turn, A B B A, so that a machine that speeds up or slows down does so for both. */
export async function compare (name: string, limit: string, measured: Workload, limiting: Workload, rounds: number, operations: number): Promise<Comparison> {
  await measured(operations)
  await limiting(operations)
  const rates: number[] = []
  const limitRates: number[] = []
  for (let round = 0; round < rounds; round++) {
    const order: [Workload, number[]][] = [[measured, rates], [limiting, limitRates]]
    for (const [workload, into] of round % 2 === 0 ? order : order.reverse()) {
      const startedAt = performance.now()
      await workload(operations)
      into.push(operations / (performance.now() - startedAt) * 1000)
    }
  }
  const ratios = rates.map((rate, at) => rate / (limitRates[at] ?? NaN))
  return {
    name,
    limit,
    rounds,
    operations,
    ratio: { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) },
    rate: Math.round(median(rates)),
    limitRate: Math.round(median(limitRates))
  }
}

/** Turns an operation into a workload of `concurrency` loops. */
export function loop (concurrency: number, operation: (turn: number) => Promise<unknown>): Workload {
  return async count => {
    let turn = 0
    const run = async (): Promise<void> => {
      while (turn < count) await operation(turn++)
    }
    await Promise.all(Array.from({ length: concurrency }, run))
  }
}

function median (numbers: number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] ?? NaN : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2
}
