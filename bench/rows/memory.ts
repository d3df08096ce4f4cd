import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'iovalkey'
import { Registry } from '@platformatic/coordinator'
import type { Bench, RowGroup } from '../bench.ts'
import { addMembers, bindDestinations, found, inFlight } from '../fixtures.ts'
import type { MemoryUse, Rest } from '../processes/coordinator-memory.ts'
import { Forked } from '../processes/forked.ts'
import { startOwnStore } from '../stores.ts'

const keyPrefix = 'coordinator'
const podCount = 100
const megabyte = 1024 * 1024

/** What bindings take in Valkey, and what a coordinator takes that has run for a day. Sizes, not times. */
export const memory: RowGroup = {
  name: 'memory',
  async run (bench) {
    if (bench.wants('memory/binding')) await weighBindings(bench, 'memory/binding', false)
    if (bench.wants('memory/binding-indexed')) await weighBindings(bench, 'memory/binding-indexed', true)
    if (bench.wants('memory/coordinator') || bench.wants('memory/churn')) await weighCoordinator(bench)
  }
}

async function weighBindings (bench: Bench, id: string, memberIndex: boolean): Promise<void> {
  const url = await startOwnStore(bench)
  const client = bench.connect(url)
  await addMembers(bench, client, keyPrefix, podCount, () => ({ memberIndex }))
  const registry = new Registry({ redis: client, keyPrefix, memberIndex, cache: false })
  bench.atEnd(() => registry.close())
  const count = bench.size(100_000, 2000)
  const claim = inFlight(64, () => found(registry.resolveDestination(randomUUID(), { claimOnMiss: true })))
  // Buffers of the connection and the text of the script are there before the first reading.
  await claim(bench.size(1000, 100))
  const before = await readStoreMemory(client)
  await claim(count)
  const bytes = (await readStoreMemory(client) - before) / count

  const [, keys] = await client.scan('0', 'MATCH', `${keyPrefix}:destination:*`, 'COUNT', 1000)
  const single = await client.call('MEMORY', 'USAGE', keys[0] as string) as number
  bench.report(id, 'bytes a binding', [bytes], `${count.toLocaleString('en')} bindings to ${podCount} pods, table of keys included; MEMORY USAGE of one destination: ${single}`)
}

/** The store's memory once it has come to rest: a table of keys that is being made larger is there twice. */
async function readStoreMemory (client: Redis): Promise<number> {
  let last = NaN
  for (let equals = 0; equals < 5;) {
    await delay(100)
    const bytes = Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1])
    equals = Math.abs(bytes - last) < 4096 ? equals + 1 : 0
    last = bytes
  }
  return last
}

async function weighCoordinator (bench: Bench): Promise<void> {
  const client = bench.connect()
  const prefix = bench.createPrefix(client)
  await addMembers(bench, client, prefix, podCount)
  const cachedCount = bench.size(10_000, 100)
  const churnedCount = bench.size(100_000, 1000)
  await bindDestinations(client, prefix, { name: 'fan-out', count: churnedCount, podsEach: 3, podCount })

  const idle = new Forked(bench, 'coordinator-memory', ['--expose-gc'])
  const coordinator = new Forked(bench, 'coordinator-memory', ['--expose-gc'])
  for (const each of [idle, coordinator]) await each.ask('open', { url: bench.url, keyPrefix: prefix })
  await coordinator.ask('fill', { name: 'fan-out', count: cachedCount })
  const rest: Rest = { deadlineMs: bench.size(20_000, 100) }
  const { rssBytes: idleBytes, heapBytes: idleHeap } = await idle.ask<MemoryUse>('rest', rest)
  const filled = await coordinator.ask<MemoryUse>('rest', rest)
  const hours: MemoryUse[] = []
  for (let hour = 0; hour < 24; hour += 2) {
    await coordinator.ask('churn', { name: 'fan-out', count: churnedCount, seconds: bench.size(7200, 10), resolvesPerSecond: 12 })
    hours.push(await coordinator.ask<MemoryUse>('measure'))
  }
  const churned = await coordinator.ask<MemoryUse>('rest', rest)
  const over = [filled, churned].map(({ rssBytes }) => (rssBytes - idleBytes) / megabyte)
  if (bench.wants('memory/coordinator')) {
    const heap = `heap alone: ${toMegabytes(filled.heapBytes - idleHeap)} and ${toMegabytes(churned.heapBytes - idleHeap)} MB more`
    bench.report('memory/coordinator', 'MB resident over an idle process', over, `${cachedCount.toLocaleString('en')} bindings to 3 pods each, before and after a day of churn; idle: ${toMegabytes(idleBytes)} MB; ${heap}`)
  }
  if (!bench.wants('memory/churn')) return
  // The first hours fill the cache and make the code hot: the 4th to 8th are held against the 20th to 24th.
  const [early, late] = [hours.slice(1, 4), hours.slice(-3)]
  const growth = average(late.map(({ heapBytes }) => heapBytes)) - average(early.map(({ heapBytes }) => heapBytes))
  const rss = hours.map(({ rssBytes }) => toMegabytes(rssBytes - idleBytes)).join(' ')
  bench.report('memory/churn', 'MB of heap grown', [growth / megabyte], `resident MB over an idle process under traffic, every second hour: ${rss}`)
}

function average (numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}

function toMegabytes (bytes: number): string {
  return (bytes / megabyte).toFixed(1)
}
