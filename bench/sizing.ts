// What a prefix costs its Valkey: bytes for each thing that is kept, server time for each script, and the operations a second of a small
// fleet, counted by the server and held against the formula of coordinator-pattern.md.
//
// npm run bench:sizing, npm run bench:sizing -- --smoke

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'iovalkey'
import { Member, Registry } from '@platformatic/coordinator'

const isSmoke = process.argv.includes('--smoke')
const bindingCount = isSmoke ? 1_000 : 10_000
const callCount = isSmoke ? 500 : 5_000
const fleetSeconds = isSmoke ? 3 : 20

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'
const client = new Redis(url)
const keyPrefix = `bench-${randomBytes(2).toString('hex')}` // 10 bytes
const closing: { close (): Promise<void> }[] = []
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** 36 bytes, as a UUID has. */
const toId = (name: string, at: number): string => `${name}-${String(at).padStart(35 - name.length, '0')}`

async function readInfo (section: string, field: RegExp): Promise<number> {
  return Number(field.exec(await client.info(section))?.[1] ?? 0)
}

const readUsedMemory = async (): Promise<number> => await readInfo('memory', /^used_memory:(\d+)/m)
const readCalls = async (): Promise<number> => await readInfo('commandstats', /cmdstat_evalsha:calls=(\d+)/)

const print = (name: string, figure: string): void => console.log(`${name.padEnd(58)} ${figure}`)

/** Bytes of a key and all its elements, by the server's own account. */
async function measureKey (...parts: string[]): Promise<number> {
  return Number(await client.call('MEMORY', 'USAGE', [keyPrefix, ...parts].join(':'), 'SAMPLES', '0') ?? 0)
}

async function measureMemory (): Promise<void> {
  const pod = { redis: client, keyPrefix, memberIndex: true, address: 'http://10.0.0.1:3000', ttl: 600 }
  const members = Array.from({ length: 100 }, (_, at) => new Member({ ...pod, memberId: `pod-${at}` }))
  await Promise.all(members.map(member => member.register()))
  const registry = new Registry({ redis: client, keyPrefix, memberIndex: true, cache: { ttl: 600_000, max: bindingCount } })
  closing.push(...members, registry)
  const [first] = members

  const id = toId('a', 0)
  for (let podCount = 1; podCount <= 3; podCount++) {
    await registry.addPodToDestination(id, `pod-${podCount}`)
    print(`destination with a 36-byte id on ${podCount} pods`, `${await measureKey('destination', id)} bytes`)
  }
  print('record of a pod', `${await measureKey('member', 'pod-1')} bytes`)
  print('its id in the set of members, of 100', `${(await measureKey('members') / 100).toFixed(0)} bytes`)
  await first?.registerLock(toId('l', 0), id)
  print('lock with a 36-byte id, without metadata', `${await measureKey('lock', toId('l', 0))} bytes`)

  const before = await readUsedMemory()
  for (let at = 1; at <= bindingCount; at++) await registry.resolveDestination(toId('a', at), { claimOnMiss: true })
  const growth = await readUsedMemory() - before
  let owned = 0
  for (let at = 0; at < 100; at++) owned += await measureKey('owned', `pod-${at}`)
  print('destination in the owned sets (memberIndex)', `${(owned / bindingCount).toFixed(0)} bytes`)
  print('binding, all in all with the tables, memberIndex', `${(growth / bindingCount).toFixed(0)} bytes`)

  const caching = new Registry({ redis: client, keyPrefix, memberIndex: true, cache: { ttl: 600_000, max: bindingCount } })
  closing.push(caching)
  await caching.resolveDestination('warm')
  collectGarbage()
  const heapBefore = process.memoryUsage().heapUsed
  for (let at = 1; at <= bindingCount; at++) await caching.resolveDestination(toId('a', at))
  collectGarbage()
  print('cached binding of one pod, in the caller', `${Math.round((process.memoryUsage().heapUsed - heapBefore) / bindingCount)} bytes`)
}

/** Time the server spends in one script, by its own account. */
async function measureScript (name: string, run: (at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < 50; at++) await run(at)
  await client.config('RESETSTAT')
  for (let at = 50; at < 50 + callCount; at++) await run(at)
  const p50 = await readInfo('latencystats', /latency_percentiles_usec_evalsha:p50=([\d.]+)/)
  const mean = await readInfo('commandstats', /cmdstat_evalsha:.*usec_per_call=([\d.]+)/)
  print(name, `p50 ${p50} µs, mean ${mean} µs`)
}

async function measureScripts (): Promise<void> {
  const prefix = `${keyPrefix}s`
  const members = Array.from({ length: 100 }, (_, at) => new Member({ redis: client, keyPrefix: prefix, memberId: `pod-${at}`, address: 'http://10.0.0.1:3000', ttl: 600 }))
  await Promise.all(members.map(member => member.register()))
  const registry = new Registry({ redis: client, keyPrefix: prefix, cache: false, strategy: 'least-loaded' })
  closing.push(registry, ...members)
  const [first] = members
  await registry.resolveDestination('one', { claimOnMiss: true })
  for (let at = 0; at < 3; at++) await registry.addPodToDestination('three', `pod-${at}`)
  await first?.registerLock('lock', 'one')
  await measureScript('resolve, one pod', () => registry.resolveDestination('one'))
  await measureScript('resolve, three pods', () => registry.resolveDestination('three'))
  await measureScript('claim, bound already', () => registry.resolveDestination('one', { claimOnMiss: true, reassignOrphans: true }))
  await measureScript('claim, first touch', at => registry.resolveDestination(toId('s', at), { claimOnMiss: true }))
  await measureScript('resolveLock', () => registry.resolveLock('lock'))
  await measureScript('heartbeat without locks', async () => await first?.heartbeat())
  await measureScript('listLiveMembers, 100 pods', () => registry.listLiveMembers())
}

/** Requests at random moments for 40 destinations by 2 registries, 5 pods that beat; the server counts. */
async function countOperations (rate: number): Promise<void> {
  const prefix = `${keyPrefix}f${rate}`
  const [registryCount, podCount, destinationCount, cacheTtl, ttl, interval] = [2, 5, 40, 500, 3, 1000]
  const clients = { redis: client, keyPrefix: prefix }
  const members = Array.from({ length: podCount }, (_, at) => new Member({ ...clients, memberId: `pod-${at}`, address: 'http://10.0.0.1:3000', ttl }))
  await Promise.all(members.map(member => member.register()))
  const registries = Array.from({ length: registryCount }, () => new Registry({ ...clients, cache: { ttl: cacheTtl } }))
  closing.push(...members, ...registries)
  for (const registry of registries) {
    for (let at = 0; at < destinationCount; at++) await registry.resolveDestination(toId('f', at), { claimOnMiss: true })
  }
  const beats = members.map(member => setInterval(() => member.heartbeat(), interval))
  const streams: { next: number, registry: Registry, id: string }[] = []
  const draw = (): number => -Math.log(1 - Math.random()) / rate * 1000
  const warmUntil = performance.now() + 1500
  for (const registry of registries) {
    for (let at = 0; at < destinationCount; at++) streams.push({ next: performance.now() + draw(), registry, id: toId('f', at) })
  }
  let requests = 0
  const send = async (until: number): Promise<void> => {
    const under = new Set<Promise<unknown>>()
    while (performance.now() < until) {
      for (const stream of streams) {
        while (stream.next <= performance.now()) {
          stream.next += draw()
          requests++
          const answer = stream.registry.resolveDestination(stream.id, { claimOnMiss: true, reassignOrphans: true })
          under.add(answer)
          answer.finally(() => under.delete(answer))
        }
      }
      await sleep(1)
    }
    await Promise.all(under)
  }
  await send(warmUntil)
  requests = 0
  const before = await readCalls()
  const startedAt = performance.now()
  await send(startedAt + fleetSeconds * 1000)
  const seconds = (performance.now() - startedAt) / 1000
  const counted = (await readCalls() - before) / seconds
  for (const beat of beats) clearInterval(beat)

  const life = cacheTtl / 1000
  const perStream = requests / seconds / streams.length
  const misses = streams.length * perStream / (1 + perStream * life)
  const expected = misses + registryCount * Math.min(1, misses / registryCount) + podCount * 1000 / interval
  print(`operations at ${rate} requests/s a destination and registry`, `${counted.toFixed(1)}/s counted, ${expected.toFixed(1)}/s by the formula (${Math.round(requests / seconds)} requests/s)`)
}

try {
  await measureMemory()
  await measureScripts()
  for (const rate of [20, 2, 0.2]) await countOperations(rate)
} finally {
  await Promise.all(closing.map(each => each.close()))
  for await (const keys of client.scanStream({ match: `${keyPrefix.slice(0, -1)}*`, count: 1000 })) {
    if (keys.length > 0) await client.unlink(...keys)
  }
  await client.quit()
}
