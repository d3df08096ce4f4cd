import type { Redis } from 'iovalkey'
import { Registry } from '@platformatic/coordinator'
import type { Bench, RowGroup } from '../bench.ts'
import type { Side } from '../compare.ts'
import { countCommands, countRoundTrips } from '../cpu.ts'
import type { Meter } from '../cpu.ts'
import { addMembers, found, inFlight, removeDestinations, touchNew } from '../fixtures.ts'
import type { RunClaims } from '../processes/registries.ts'
import { forkRegistries, openRegistries, processCount, registriesEach } from './registries.ts'

const podCounts = [10, 100, 1000] as const

/** First touches, against the plainest read there is and against themselves with more pods. */
export const claims: RowGroup = {
  name: 'claims',
  async run (bench) {
    const client = bench.connect()
    const meter = bench.createMeter()
    const prefixes = new Map<number, string>()
    for (const podCount of podCounts) {
      const keyPrefix = bench.createPrefix(client)
      prefixes.set(podCount, keyPrefix)
      await addMembers(bench, client, keyPrefix, bench.size(podCount, Math.min(podCount, 150)))
      await client.set(`${keyPrefix}:plain`, 'x')
    }
    await claimFromOne(bench, client, prefixes, meter)
    await claimFromMany(bench, client, prefixes)
    await claimOneId(bench, prefixes.get(10) as string, meter)
  }
}

async function claimFromOne (bench: Bench, client: Redis, prefixes: ReadonlyMap<number, string>, meter: Meter): Promise<void> {
  const sides: Record<string, Side> = {}
  for (const [podCount, keyPrefix] of prefixes) {
    const registry = new Registry({ redis: client, keyPrefix, cache: false })
    bench.atEnd(() => registry.close())
    sides[String(podCount)] = {
      label: `first touch of ${podCount} pods`,
      ...touchNew(client, keyPrefix, id => found(registry.resolveDestination(id, { claimOnMiss: true })))
    }
    sides['get'] = { label: 'GET', run: inFlight(64, () => client.get(`${keyPrefix}:plain`)) }
  }
  await comparePodCounts(bench, sides, meter, '1-registry')
}

async function claimFromMany (bench: Bench, client: Redis, prefixes: ReadonlyMap<number, string>): Promise<void> {
  if (!bench.wants('claims/16-registries/1000-over-10') && !podCounts.some(count => bench.wants(`claims/16-registries/${count}-pods`))) return
  const forked = forkRegistries(bench)
  const sides: Record<string, Side> = {}
  const ask = async (question: 'claim' | 'get', keyPrefix: string, count: number): Promise<void> => {
    const details = (at: number): RunClaims => ({ keyPrefix, count: Math.ceil(count / processCount), concurrency: 16 * registriesEach, name: `new-${at}` })
    await forked.ask(question, details)
  }
  for (const [podCount, keyPrefix] of prefixes) {
    await openRegistries(bench, forked, keyPrefix, 'round-robin')
    let touched = 0
    sides[String(podCount)] = {
      label: `first touch of ${podCount} pods`,
      run: async count => {
        touched = Math.ceil(count / processCount) * processCount
        await ask('claim', keyPrefix, count)
      },
      clean: () => removeDestinations(client, keyPrefix, Array.from({ length: touched }, (_, turn) => `new-${turn % processCount}-${Math.floor(turn / processCount)}`))
    }
    sides['get'] = { label: 'GET', run: async count => await ask('get', keyPrefix, count) }
  }
  await comparePodCounts(bench, sides, bench.createMeter(forked), '16-registries')
}

async function comparePodCounts (bench: Bench, sides: Record<string, Side>, meter: Meter, registries: string): Promise<void> {
  await bench.compare({
    meter,
    control: '10',
    sides,
    pairs: [
      ...podCounts.map(podCount => ({ id: `claims/${registries}/${podCount}-pods`, measured: String(podCount), limit: 'get', figure: 'cpu' as const })),
      { id: `claims/${registries}/1000-over-10`, measured: '1000', limit: '10', figure: 'cpu' }
    ]
  })
}

/** Many callers of several registries, one destination: counted, not timed. */
async function claimOneId (bench: Bench, keyPrefix: string, meter: Meter): Promise<void> {
  if (!bench.wants('claims/one-id/bindings') && !bench.wants('claims/one-id/commands')) return
  const callers = bench.size(1000, 100)
  const client = bench.connect()
  const registries = Array.from({ length: 4 }, () => new Registry({ redis: bench.connect(), keyPrefix, cache: false }))
  bench.atEnd(() => Promise.all(registries.map(registry => registry.close())))
  // The store is sent a script's text the first time it is asked for it, and after a restart.
  await Promise.all(registries.map(registry => found(registry.resolveDestination('first', { claimOnMiss: true }))))
  const bindings: number[] = []
  const commandCounts: number[] = []
  const roundTrips: number[] = []
  for (let trial = 0; trial < bench.effort.rounds; trial++) {
    const id = `one-${trial}`
    // So that the list of members, which is read when it is older than a second, is not part of what is counted.
    await Promise.all(registries.map(registry => registry.listLiveMembers()))
    const { commands, result } = await meter.measure(() => Promise.all(Array.from({ length: callers }, (_, at) => {
      return found((registries[at % registries.length] as Registry).resolveDestination(id, { claimOnMiss: true }))
    })))
    const memberIds = new Set(result.map(({ memberId }) => memberId))
    bindings.push(Math.max(memberIds.size, await client.scard(`${keyPrefix}:destination:${id}`)))
    commandCounts.push(countCommands(commands))
    roundTrips.push(countRoundTrips(commands))
  }
  bench.report('claims/one-id/bindings', 'bindings', bindings)
  bench.report('claims/one-id/commands', 'commands, in scripts too', commandCounts, `round trips: ${Math.max(...roundTrips)} at most`)
}
