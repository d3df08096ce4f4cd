import { randomBytes } from 'node:crypto'
import { Redis } from 'iovalkey'
import { compare } from './compare.ts'
import type { Comparison, Effort } from './compare.ts'
import { Meter } from './cpu.ts'
import type { CpuSource } from './cpu.ts'
import { removeKeys } from './fixtures.ts'
import { judge } from './judge.ts'
import type { Verdict } from './judge.ts'
import type { ComparisonResult } from './figures.ts'
import { toSpread } from './statistics.ts'
import type { Spread } from './statistics.ts'
import { findTarget } from './targets.ts'

/** A count or a size, which is what it is: no control is held against it. */
export interface PlainResult {
  kind: 'plain'
  id: string
  unit: string
  value: Spread
  note: string
}

export type Result = (ComparisonResult | PlainResult) & { verdict: Verdict }

/** A file of rows/: what is measured with one set of fixtures. */
export interface RowGroup {
  /** First part of its rows' ids. */
  readonly name: string
  run (bench: Bench): Promise<void>
}

export interface BenchOptions {
  readonly url: string
  readonly isSmoke: boolean
  /** Groups, or beginnings of ids, that were asked for; all when empty. */
  readonly names: readonly string[]
  /** Told of each result as it comes. */
  readonly onResult: (result: Result) => void
  readonly onNote: (text: string) => void
}

/** What the rows are given: clients and prefixes that end with their group, and the ways to measure and to report. */
export class Bench {
  readonly url: string
  readonly effort: Effort
  readonly #options: BenchOptions
  readonly #results: Result[] = []
  #endings: (() => unknown)[] = []

  constructor (options: BenchOptions) {
    this.#options = options
    this.url = options.url
    this.effort = { isSmoke: options.isSmoke, rounds: options.isSmoke ? 2 : 15, smokeOperations: 64 }
  }

  get results (): readonly Result[] {
    return this.#results
  }

  /** Whether a row was asked for. */
  wants (id: string): boolean {
    const { names } = this.#options
    return names.length === 0 || names.some(name => id === name || id.startsWith(`${name}/`))
  }

  /** Whether any row of a group was asked for. */
  wantsGroup (group: string): boolean {
    const { names } = this.#options
    return names.length === 0 || names.some(name => name === group || name.startsWith(`${group}/`))
  }

  /** A size for the real run, or the small one by which smoke sees that the bench runs. */
  size (full: number, smoke: number): number {
    return this.effort.isSmoke ? smoke : full
  }

  /** Opens a connection, closed at the end of the group. */
  connect (url: string = this.url): Redis {
    const client = new Redis(url)
    this.atEnd(() => client.quit())
    return client
  }

  /** A meter with a connection of its own. */
  createMeter (client?: CpuSource, url?: string): Meter {
    return new Meter(this.connect(url), client)
  }

  /** A random prefix as long as the default one; its keys are removed at the end of the group. */
  createPrefix (client: Redis): string {
    const prefix = `bench${randomBytes(3).toString('hex')}`
    this.atEnd(() => removeKeys(client, prefix))
    return prefix
  }

  /** Has something undone at the end of the group; what was begun last ends first. */
  atEnd (action: () => unknown): void {
    this.#endings.push(action)
  }

  async endGroup (): Promise<void> {
    const endings = this.#endings.reverse()
    this.#endings = []
    const failures: unknown[] = []
    for (const end of endings) {
      try {
        await end()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Something was not undone')
  }

  note (text: string): void {
    this.#options.onNote(text)
  }

  /** Compares the sides of those pairs that were asked for. */
  async compare (comparison: Comparison): Promise<void> {
    const pairs = comparison.pairs.filter(({ id }) => this.wants(id))
    if (pairs.length === 0) return
    const used = new Set([comparison.control, ...pairs.flatMap(({ measured, limit }) => [measured, limit])])
    const sides = Object.fromEntries(Object.entries(comparison.sides).filter(([name]) => used.has(name)))
    const results = await compare({ ...comparison, sides, pairs }, this.effort, text => this.note(text))
    for (const result of results) this.#report({ ...result, verdict: this.#judge(result.id, result.value.median, result.control) })
  }

  /** Reports a count or a size of one or more trials; the worst of them is judged. */
  report (id: string, unit: string, values: readonly number[], note = ''): void {
    const value = toSpread(values)
    const worst = findTarget(id)?.atLeast === undefined ? value.max : value.min
    this.#report({ kind: 'plain', id, unit, value, note, verdict: this.#judge(id, worst) })
  }

  #judge (id: string, value: number, control?: Spread): Verdict {
    return this.effort.isSmoke ? 'smoke' : judge(value, findTarget(id), control)
  }

  #report (result: Result): void {
    this.#results.push(result)
    this.#options.onResult(result)
  }
}
