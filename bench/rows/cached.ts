import { LRUCache } from 'lru-cache'
import { Registry } from '@platformatic/coordinator'
import type { RowGroup } from '../bench.ts'
import { addMembers, bindDestinations, found, inFlight } from '../fixtures.ts'

const podCount = 10
const idCount = 1000
const dayMs = 86_400_000

/** Answers from the registry's cache, against what no async cache can do without. */
export const cached: RowGroup = {
  name: 'cached',
  async run (bench) {
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const meter = bench.createMeter()
    await addMembers(bench, client, keyPrefix, podCount)
    const registry = new Registry({ redis: client, keyPrefix, cache: { ttl: dayMs } })
    bench.atEnd(() => registry.close())

    for (const [name, podsEach] of [['1-pod', 1], ['3-pods', 3]] as const) {
      await bindDestinations(client, keyPrefix, { name, count: idCount, podsEach, podCount })
      const ids = Array.from({ length: idCount }, (_, at) => `${name}-${at}`)
      for (const id of ids) await found(registry.resolveDestination(id))
      const idOf = (turn: number): string => ids[turn % idCount] as string
      const readLru = createLruRead(ids)
      for (const count of [1, 64]) {
        await bench.compare({
          meter,
          control: 'resolve',
          sides: {
            resolve: { label: 'resolveDestination', run: inFlight(count, turn => registry.resolveDestination(idOf(turn))) },
            limit: { label: 'async lru-cache get', run: inFlight(count, turn => readLru(idOf(turn))) }
          },
          pairs: [{ id: `cached/${name}/${count}-in-flight`, measured: 'resolve', limit: 'limit', figure: 'client cpu' }]
        })
      }
    }
  }
}

function createLruRead (ids: readonly string[]): (id: string) => Promise<unknown> {
  const lru = new LRUCache<string, object>({ max: 10_000 })
  for (const id of ids) lru.set(id, {})
  return async id => lru.get(id)
}
