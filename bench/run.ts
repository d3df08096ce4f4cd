import { mkdirSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { Redis } from 'iovalkey'
import { LRUCache } from 'lru-cache'
import { Member, Registry } from '@platformatic/coordinator'
import { compare, loop } from './measure.ts'
import type { Comparison } from './measure.ts'

const args = process.argv.slice(2)
const isSmoke = args.includes('--smoke')
const names = args.filter(arg => !arg.startsWith('--'))
const rounds = isSmoke ? 2 : 15
const scale = isSmoke ? 0.02 : 1

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'
const keyPrefix = `bench-${randomBytes(6).toString('hex')}`
const client = new Redis(url)
const members = Array.from({ length: 10 }, (_, at) => new Member({ redis: client, keyPrefix, memberId: `pod-${at}`, address: `http://10.0.0.${at}:3000`, ttl: 600 }))
await Promise.all(members.map(member => member.register()))
const cached = new Registry({ redis: client, keyPrefix, cache: { ttl: 600_000 } })
const uncached = new Registry({ redis: client, keyPrefix, cache: false })
const claiming = new Registry({ redis: client, keyPrefix, cache: false, strategy: 'least-loaded' })

const ids = Array.from({ length: 1000 }, (_, at) => `destination-${at}`)
for (const id of ids) await cached.resolveDestination(id, { claimOnMiss: true })
await client.set(`${keyPrefix}:plain`, 'x')
await members[0]?.registerLock('lock-1', 'destination-1')
const lru = new LRUCache<string, object>({ max: 10_000, ttl: 600_000 })
for (const id of ids) lru.set(id, {})

const id = (turn: number): string => ids[turn % ids.length] ?? ''
const get = loop(64, () => client.get(`${keyPrefix}:plain`))
let touched = 0

const comparisons: Record<string, () => Promise<Comparison>> = {
  cached: () => compare('cached resolve, one at a time', 'await of a function around one lru-cache get',
    loop(1, turn => cached.resolveDestination(id(turn))), loop(1, async turn => lru.get(id(turn))), rounds, 400_000 * scale),
  uncached: () => compare('uncached resolve, 64 in flight', 'GET, 64 in flight',
    loop(64, turn => uncached.resolveDestination(id(turn))), get, rounds, 40_000 * scale),
  'first-touch': () => compare('first touch of 10 pods, 64 in flight', 'GET, 64 in flight',
    loop(64, () => claiming.resolveDestination(`new-${touched++}`, { claimOnMiss: true })), get, rounds, 20_000 * scale),
  lock: () => compare('resolveLock, 64 in flight', 'GET, 64 in flight',
    loop(64, () => uncached.resolveLock('lock-1')), get, rounds, 40_000 * scale)
}

const unknown = names.filter(name => !Object.hasOwn(comparisons, name))
if (unknown.length > 0) {
  console.error(`No such bench: ${unknown.join(', ')}. There are: ${Object.keys(comparisons).join(', ')}`)
  process.exitCode = 1
}
const results: Comparison[] = []
for (const [name, run] of Object.entries(comparisons)) {
  if (unknown.length > 0 || (names.length > 0 && !names.includes(name))) continue
  const result = await run()
  results.push(result)
  const { median, min, max } = result.ratio
  console.log(`${result.name.padEnd(40)} ${median.toFixed(2)} (${min.toFixed(2)}-${max.toFixed(2)}) of ${result.limit}: ${result.rate}/s against ${result.limitRate}/s`)
}
const folder = new URL('out/', import.meta.url)
mkdirSync(folder, { recursive: true })
writeFileSync(new URL('results.json', folder), `${JSON.stringify({ date: new Date().toISOString(), node: process.version, isSmoke, results }, null, 2)}\n`)

for await (const keys of client.scanStream({ match: `${keyPrefix}:*`, count: 1000 })) {
  if (keys.length > 0) await client.unlink(...keys)
}
await Promise.all([cached, uncached, claiming, ...members].map(each => each.close()))
await client.quit()
