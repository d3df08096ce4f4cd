/**
 * Weighs the ways to pass a request on against bare reply.from, and prints a table. It ships nothing and judges nothing.
 *
 *   node --import tsx services/with-store.ts -- node --import tsx bench/spike/run.ts [rounds]
 */
import { compare } from '../compare.ts'
import type { Pair, Side } from '../compare.ts'
import type { SideSummary } from '../figures.ts'
import { SpikeFixture } from './fixture.ts'
import { allWays, ways } from './ways.ts'

const kinds = [['GET', 0], ['POST of 1 KiB', 1024], ['POST of 64 KiB', 64 * 1024]] as const
// The compiler is still at it after what compare does by itself.
const warmUpCount = 20_000
const rounds = Number(process.argv[2] ?? 12)

const fixture = await SpikeFixture.open()
try {
  let bodyBytes = 0
  const sides: Record<string, Side> = {}
  for (const way of allWays) {
    const { app, send } = await fixture.openWay(way)
    await send(0, warmUpCount)
    await send(1024, warmUpCount)
    sides[way] = { label: ways[way], meter: fixture.bench.createMeter(app), run: async count => ({ latenciesMs: await send(bodyBytes, count) }) }
  }
  for (const [name, bytes] of kinds) {
    bodyBytes = bytes
    const pairs: Pair[] = allWays.map(way => ({ id: `spike/${way}`, measured: way, limit: 'bare', figure: 'client cpu' }))
    const results = await compare({ sides, pairs, control: 'bare', meter: fixture.bench.createMeter(), segmentMs: 250 }, { isSmoke: false, rounds, smokeOperations: 64 })
    const { control } = results[0] ?? { control: { p5: NaN, p95: NaN } }
    console.log(`\n${name}, ${rounds} rounds, ${new Date().toISOString().slice(0, 16)}, control ${control.p5.toFixed(2)}-${control.p95.toFixed(2)}\n`)
    console.log('| way | CPU us | times bare (5-95 %) | rate /s | p50 us | p99 us |\n|---|---|---|---|---|---|')
    for (const { measured, value } of results) console.log(toLine(measured, `${value.median.toFixed(2)} (${value.p5.toFixed(2)}-${value.p95.toFixed(2)})`))
  }
} finally {
  await fixture.bench.endGroup()
}

function toLine ({ label, clientUs, rate, p50Us, p99Us }: SideSummary, times: string): string {
  const cells = [label, clientUs.median.toFixed(1), times, Math.round(rate.median).toLocaleString('en'), p50Us?.median.toFixed(0), p99Us?.median.toFixed(0)]
  return `| ${cells.join(' | ')} |`
}
