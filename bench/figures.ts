import { availableParallelism } from 'node:os'
import { addCommands, countCommands, countRoundTrips } from './cpu.ts'
import { toSpread } from './statistics.ts'
import type { Latency, Spread } from './statistics.ts'
import { findTarget } from './targets.ts'

/** What came of a side's two runs in one round. */
export interface Segment {
  operations: number
  ms: number
  clientUs: number
  storeUs: number
  commands: Record<string, number>
  latenciesMs: Float64Array
  latency?: Latency
}

/** What of a segment is compared. */
export type FigureName = 'cpu' | 'client cpu' | 'store share' | 'p50' | 'p99'

/** One figure of a segment; smaller is better. */
export function costOf (figure: FigureName, segment: Segment, clientCount: number): number {
  switch (figure) {
    case 'cpu': return boundUs(segment, clientCount)
    case 'client cpu': return segment.clientUs / segment.operations
    case 'store share': return segment.storeUs / (segment.ms * 1000) * 100
    case 'p50': return (segment.latency?.p50Ms ?? NaN) * 1000
    case 'p99': return (segment.latency?.p99Ms ?? NaN) * 1000
    default: return figure satisfies never
  }
}

/**
 * Microseconds an operation takes at the least, going by CPU: the store is one thread, each client is one, and all of them share the
 * cores. Its inverse is the rate that the busiest of them allows, which unlike the measured one does not go by who else uses the machine.
 */
function boundUs ({ operations, clientUs, storeUs }: Segment, clientCount: number): number {
  return Math.max(storeUs, clientUs / clientCount, (clientUs + storeUs) / availableParallelism()) / operations
}

export interface SideSummary {
  label: string
  /** Operations a second. */
  rate: Spread
  /** Microseconds of CPU an operation. */
  clientUs: Spread
  storeUs: Spread
  /** An operation, over all rounds; those inside scripts counted. */
  commands: number
  roundTrips: number
  p50Us?: Spread
  p99Us?: Spread
}

/** How the figures of two sides become one value: cost over cost, the inverse, or the measured one's own. */
export type Mode = 'times' | 'share' | 'alone'

export interface ComparisonResult {
  kind: 'comparison'
  id: string
  figure: FigureName
  mode: Mode
  /** Over the rounds. */
  value: Spread
  /** One side against itself, in the same rounds. */
  control: Spread
  rounds: number
  /** 1, or more when the control was too wide and it was run again, longer. */
  runs: number
  operationsPerRound: number
  measured: SideSummary
  limit: SideSummary
}

export interface PairRounds {
  readonly id: string
  readonly figure: FigureName
  readonly labels: readonly [measured: string, limit: string]
  readonly rounds: readonly { measured: Segment, limit: Segment, one: Segment, other: Segment }[]
  readonly clientCount: number
  readonly runs: number
}

/** Turns the rounds of a pair into its result. */
export function summarize ({ id, figure, labels, rounds, clientCount, runs }: PairRounds): ComparisonResult {
  const mode: Mode = figure === 'store share' ? 'alone' : findTarget(id)?.atLeast === undefined ? 'times' : 'share'
  const cost = (segment: Segment): number => costOf(figure, segment, clientCount)
  const values = rounds.map(({ measured, limit }) => {
    return mode === 'alone' ? cost(measured) : mode === 'times' ? cost(measured) / cost(limit) : cost(limit) / cost(measured)
  })
  return {
    kind: 'comparison',
    id,
    figure,
    mode,
    value: toSpread(values),
    control: toSpread(rounds.map(({ one, other }) => cost(one) / cost(other))),
    rounds: rounds.length,
    runs,
    operationsPerRound: rounds[0]?.measured.operations ?? 0,
    measured: summarizeSide(labels[0], rounds.map(({ measured }) => measured)),
    limit: summarizeSide(labels[1], rounds.map(({ limit }) => limit))
  }
}

function summarizeSide (label: string, segments: readonly Segment[]): SideSummary {
  const commands: Record<string, number> = {}
  for (const segment of segments) addCommands(commands, segment.commands)
  const operations = segments.reduce((sum, segment) => sum + segment.operations, 0)
  const spread = (of: (segment: Segment) => number): Spread => toSpread(segments.map(of))
  const hasLatency = segments.some(({ latency }) => latency !== undefined)
  return {
    label,
    rate: spread(({ operations, ms }) => operations / ms * 1000),
    clientUs: spread(({ operations, clientUs }) => clientUs / operations),
    storeUs: spread(({ operations, storeUs }) => storeUs / operations),
    commands: countCommands(commands) / operations,
    roundTrips: countRoundTrips(commands) / operations,
    ...(hasLatency ? { p50Us: spread(segment => costOf('p50', segment, 1)), p99Us: spread(segment => costOf('p99', segment, 1)) } : {})
  }
}
