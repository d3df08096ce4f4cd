import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'
import type { Result } from './bench.ts'
import type { Verdict } from './judge.ts'
import type { SideSummary } from './figures.ts'
import type { Spread } from './statistics.ts'
import { findTarget, formatTarget } from './targets.ts'

const widths = [34, 48, 26, 10, 12] as const

export function formatHead (): string {
  return formatLine(['row', 'figure', 'median (range)', 'target', 'control', 'verdict'])
}

/** A result as lines of the table. */
export function formatResult (result: Result): string {
  const target = findTarget(result.id)
  const bound = target === undefined ? '' : formatTarget(target)
  if (result.kind === 'plain') {
    const line = formatLine([result.id, result.unit, formatSpread(result.value), bound, 'exact', result.verdict])
    return result.note === '' ? line : `${line}\n    ${result.note}`
  }
  const { value, control, mode, measured, limit, figure, runs } = result
  const words = { times: `times the ${nameOf(figure)} of the limit`, share: 'share of the limit\'s rate by CPU', alone: '% of a core, the store\'s CPU' }[mode]
  const again = runs > 1 ? ` (run ${runs})` : ''
  const range = `${formatNumber(control.p5)}-${formatNumber(control.p95)}`
  const line = formatLine([result.id, words, formatSpread(value), bound, range, `${result.verdict}${again}`])
  return [line, formatSide(measured), formatSide(limit)].join('\n')
}

/** The results of a verdict, a line each, for `--check`. */
export function listBy (verdict: Verdict, results: readonly Result[]): string[] {
  return results.filter(result => result.verdict === verdict).map(result => {
    const target = findTarget(result.id)
    return `${verdict} ${result.id}: ${formatSpread(result.value)}, target ${target === undefined ? '' : formatTarget(target)} (${target?.what})`
  })
}

export interface RunDetails {
  readonly isSmoke: boolean
  readonly names: readonly string[]
  readonly storeVersion: string
  /** Of the minute before the run: of what else the machine did. */
  readonly loadBefore: number
  readonly seconds: number
}

/** All of a run as it is written to bench/out/results.json. */
export function toJson ({ isSmoke, names, storeVersion, loadBefore, seconds }: RunDetails, results: readonly Result[]): string {
  const [first] = cpus()
  return JSON.stringify({
    date: new Date().toISOString(),
    machine: { cpu: first?.model ?? 'unknown', cores: cpus().length, system: `${process.platform} ${release()}`, loadBefore, loadAfter: loadavg()[0] },
    runtime: process.version,
    store: storeVersion,
    isSmoke,
    names,
    seconds: Math.round(seconds),
    results: results.map(result => ({ ...result, target: findTarget(result.id) ?? null }))
  }, null, 2)
}

export function writeResults (json: string): string {
  const folder = new URL('out/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  const file = new URL('results.json', folder)
  writeFileSync(file, `${json}\n`)
  return 'bench/out/results.json'
}

function formatSide ({ label, rate, clientUs, storeUs, commands, roundTrips, p50Us, p99Us }: SideSummary): string {
  const parts = [`${Math.round(rate.median).toLocaleString('en')}/s`, `client ${formatNumber(clientUs.median)} us`]
  if (storeUs.median > 0) parts.push(`store ${formatNumber(storeUs.median)} us`)
  if (commands > 0) parts.push(`${formatNumber(commands)} commands`, `${formatNumber(roundTrips)} round trips`)
  if (p50Us !== undefined && p99Us !== undefined) parts.push(`p50 ${formatNumber(p50Us.median)} us`, `p99 ${formatNumber(p99Us.median)} us`)
  return `    ${label.padEnd(widths[0])} ${parts.join('  ')}`
}

function nameOf (figure: string): string {
  return figure === 'client cpu' ? 'CPU' : figure === 'cpu' ? 'CPU' : figure
}

function formatSpread ({ median, min, max }: Spread): string {
  return min === max ? formatNumber(median) : `${formatNumber(median)} (${formatNumber(min)}-${formatNumber(max)})`
}

/** Three digits, and whole numbers as they are. */
function formatNumber (value: number): string {
  if (Number.isInteger(value) || value >= 1000) return Math.round(value).toLocaleString('en')
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 0.01 ? value.toFixed(2) : value.toPrecision(2)
}

function formatLine (cells: readonly string[]): string {
  return cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' ').trimEnd()
}
