/**
 * Profiles lookupAndProxy and bare reply.from under load, prints whose code takes the time, and draws flame-graph.svg.
 *
 *   node --import tsx services/with-store.ts -- node --import tsx bench/spike/flame.ts
 */
import { writeFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { SpikeFixture } from './fixture.ts'
import { drawFlames } from './flame-graph.ts'
import { owners, toShares, toTree } from './owners.ts'
import { ways } from './ways.ts'
import type { Way } from './ways.ts'

const profiled: readonly Way[] = ['ours-built', 'bare', 'forward-raw']
const drawn = new Set<Way>(['ours-built', 'bare'])
const warmUpCount = 40_000
const count = 80_000
const intervalUs = 200

const fixture = await SpikeFixture.open()
try {
  const profiles = []
  for (const way of profiled) {
    const { app, send } = await fixture.openWay(way)
    await send(0, warmUpCount)
    await app.ask('startProfile', { intervalUs })
    const before = await app.readMicroseconds()
    await send(0, count)
    const cpuUs = (await app.readMicroseconds() - before) / count
    const root = toTree(await app.ask<Profiler.Profile>('stopProfile'))
    profiles.push({ way, title: `${ways[way]}, GET`, root, shares: toShares(root), cpuUs })
  }
  console.log(`| owner | ${profiles.map(({ title }) => title).join(' | ')} |\n|---|${'---|'.repeat(profiles.length)}`)
  for (const owner of owners) console.log(`| ${owner} | ${profiles.map(({ shares }) => `${shares.get(owner)?.toFixed(1)} %`).join(' | ')} |`)
  console.log(`| CPU us for each, profiled | ${profiles.map(({ cpuUs }) => cpuUs.toFixed(1)).join(' | ')} |`)
  writeFileSync(new URL('flame-graph.svg', import.meta.url), drawFlames(profiles.filter(({ way }) => drawn.has(way))))
} finally {
  await fixture.bench.endGroup()
}
