import { addCommands } from './cpu.ts'
import type { Spent, Meter } from './cpu.ts'
import { summarize } from './figures.ts'
import type { ComparisonResult, FigureName, Segment } from './figures.ts'
import { isWide } from './judge.ts'
import { toLatency } from './statistics.ts'
import { findTarget } from './targets.ts'

/** One of the things that take turns. */
export interface Side {
  readonly label: string
  /** Does so many operations. */
  run (count: number): Promise<Outcome | void>
  /** Before each run, untimed. */
  prepare? (count: number): Promise<unknown>
  /** After each run, untimed. */
  clean? (): Promise<unknown>
  /** Measures it; the comparison's own unless given. */
  readonly meter?: Meter
}

/** What a side measured by itself, where it knows better than the meter around it. */
export interface Outcome {
  latenciesMs?: Float64Array
  ms?: number
  clientUs?: number
}

/** One side held against another. */
export interface Pair {
  readonly id: string
  readonly measured: string
  readonly limit: string
  readonly figure: FigureName
}

export interface Comparison {
  readonly sides: Readonly<Record<string, Side>>
  readonly pairs: readonly Pair[]
  /** The side that runs twice in each round, as two: the control. */
  readonly control: string
  readonly meter: Meter
  /** Milliseconds of one run of a side, from which its number of operations is found. @defaultValue 150 */
  readonly segmentMs?: number
  /** Operations of one run, where they are given, and done several times when it has to be longer; else found. */
  readonly operations?: number
}

export interface Effort {
  readonly isSmoke: boolean
  readonly rounds: number
  /** Operations of a run when only smoke is wanted. */
  readonly smokeOperations: number
}

/** Times a comparison is run when its control is too wide: each run is twice as long as the one before. */
export const maxRuns = 3

/** One turn of a side in a round; the control side has two. */
interface Turn {
  readonly key: string
  readonly side: Side
  readonly name: string
}

const controlKey = 'control of'

/**
 * Runs sides in turn: in each round all of them forwards, then backwards (A B C C B A, where C is the control: A or B once more), the next
 * round starts with another. What the machine does meanwhile, it does to all. Runs again, longer, while the control of a pair with a
 * target is too wide, `maxRuns` times in all; the last run counts.
 */
export async function compare (comparison: Comparison, effort: Effort, note: (text: string) => void = () => {}): Promise<ComparisonResult[]> {
  const { sides, pairs, control } = comparison
  const counts = new Map<string, number>()
  for (const [name, side] of Object.entries(sides)) counts.set(name, await warmUp(side, comparison, effort))
  const turns: Turn[] = Object.entries(sides).map(([name, side]) => ({ key: name, name, side }))
  turns.push({ key: controlKey, name: control, side: requireSide(sides, control) })

  for (let run = 1; ; run++) {
    const length = 2 ** (run - 1)
    const rounds = await runRounds(turns, counts, length, comparison, effort)
    const results = pairs.map(pair => summarize({
      id: pair.id,
      figure: pair.figure,
      labels: [requireSide(sides, pair.measured).label, requireSide(sides, pair.limit).label],
      rounds: rounds.map(round => ({ measured: take(round, pair.measured), limit: take(round, pair.limit), one: take(round, control), other: take(round, controlKey) })),
      clientCount: (requireSide(sides, pair.measured).meter ?? comparison.meter).client.processCount,
      runs: run
    }))
    const wide = results.filter(({ id, control }) => findTarget(id) !== undefined && isWide(control))
    if (effort.isSmoke || wide.length === 0 || run === maxRuns) return results
    note(`undecided: identical code differed by more than 20 % beside ${wide.map(({ id }) => id).join(', ')}; again, twice as long`)
  }
}

/** @param length times the count of each side that it does at its turn */
async function runRounds (turns: readonly Turn[], counts: ReadonlyMap<string, number>, length: number, comparison: Comparison, { rounds }: Effort): Promise<Map<string, Segment>[]> {
  const all: Map<string, Segment>[] = []
  for (let at = 0; at < rounds; at++) {
    const first = at % turns.length
    const order = [...turns.slice(first), ...turns.slice(0, first)]
    const round = new Map<string, Segment>()
    for (const { key, name, side } of [...order, ...order.toReversed()]) {
      const segment = await runTurn(side, counts.get(name) ?? 1, length, comparison)
      const earlier = round.get(key)
      round.set(key, earlier === undefined ? segment : join(earlier, segment))
    }
    all.push(round)
  }
  return all
}

async function runTurn (side: Side, count: number, length: number, { meter, operations }: Comparison): Promise<Segment> {
  if (operations === undefined) return await runSide(side, count * length, meter)
  // A count that was given is what the row is about: it is done again, not made larger.
  let all = await runSide(side, count, meter)
  for (let times = 1; times < length; times++) all = join(all, await runSide(side, count, meter))
  return all
}

async function runSide (side: Side, count: number, meter: Meter): Promise<Segment> {
  await side.prepare?.(count)
  const { result, ms, clientUs, storeUs, commands }: Spent & { result: Outcome | void } = await (side.meter ?? meter).measure(() => side.run(count))
  await side.clean?.()
  return {
    operations: count,
    ms: result?.ms ?? ms,
    clientUs: result?.clientUs ?? clientUs,
    storeUs,
    commands,
    latenciesMs: result?.latenciesMs ?? new Float64Array()
  }
}

/** Runs a side until its code is hot, and finds how many operations fill a segment. */
async function warmUp (side: Side, { meter, segmentMs = 150, operations }: Comparison, { isSmoke, smokeOperations }: Effort): Promise<number> {
  if (isSmoke || operations !== undefined) {
    const count = isSmoke ? Math.min(smokeOperations, operations ?? Infinity) : operations as number
    await runSide(side, count, meter)
    return count
  }
  let count = 16
  let totalMs = 0
  for (;;) {
    const { ms } = await runSide(side, count, meter)
    totalMs += ms
    if (totalMs > 4 * segmentMs && ms > segmentMs / 2) return Math.max(1, Math.round(count * segmentMs / ms))
    count = Math.max(1, Math.round(count * Math.min(8, Math.max(0.25, segmentMs / ms))))
  }
}

function join (a: Segment, b: Segment): Segment {
  const commands = { ...a.commands }
  addCommands(commands, b.commands)
  const latenciesMs = new Float64Array(a.latenciesMs.length + b.latenciesMs.length)
  latenciesMs.set(a.latenciesMs)
  latenciesMs.set(b.latenciesMs, a.latenciesMs.length)
  const joined = { operations: a.operations + b.operations, ms: a.ms + b.ms, clientUs: a.clientUs + b.clientUs, storeUs: a.storeUs + b.storeUs, commands, latenciesMs }
  return latenciesMs.length === 0 ? joined : { ...joined, latency: toLatency(latenciesMs) }
}

function take (round: ReadonlyMap<string, Segment>, name: string): Segment {
  const segment = round.get(name)
  if (segment === undefined) throw new Error(`No side ${name} in this comparison`)
  return segment
}

function requireSide (sides: Readonly<Record<string, Side>>, name: string): Side {
  const side = sides[name]
  if (side === undefined) throw new Error(`No side ${name} in this comparison`)
  return side
}
