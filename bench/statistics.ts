/** What a row of measurements comes to. */
export interface Spread {
  median: number
  /** 5 % and 95 % quantiles. */
  p5: number
  p95: number
  min: number
  max: number
}

/** Sums a list of numbers up; all NaN for an empty one. */
export function toSpread (numbers: readonly number[]): Spread {
  const sorted = [...numbers].sort((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    p5: quantile(sorted, 0.05),
    p95: quantile(sorted, 0.95),
    min: sorted[0] ?? NaN,
    max: sorted.at(-1) ?? NaN
  }
}

/** The quantile of a sorted list, interpolated between its neighbours (type 7 of Hyndman and Fan, what R and NumPy do). */
export function quantile (sorted: ArrayLike<number>, share: number): number {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? NaN
  const above = sorted[Math.ceil(at)] ?? NaN
  return below + (above - below) * (at - Math.floor(at))
}

/** Median and 99 % quantile of latencies, which are sorted in place. */
export function toLatency (latenciesMs: Float64Array): Latency {
  const sorted = latenciesMs.sort()
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }
}

export interface Latency {
  p50Ms: number
  p99Ms: number
}
