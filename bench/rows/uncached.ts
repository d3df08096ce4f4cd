import { Registry } from '@platformatic/coordinator'
import type { RowGroup } from '../bench.ts'
import { addMembers, bindDestinations, found, inFlight, oneByOne } from '../fixtures.ts'

const podCount = 10
const idCount = 1000

/** Resolves that ask Valkey each time, against the plainest read there is. */
export const uncached: RowGroup = {
  name: 'uncached',
  async run (bench) {
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const meter = bench.createMeter()
    await addMembers(bench, client, keyPrefix, podCount)
    const registry = new Registry({ redis: client, keyPrefix, cache: false })
    bench.atEnd(() => registry.close())
    await client.set(`${keyPrefix}:plain`, 'x')
    const get = (): Promise<unknown> => client.get(`${keyPrefix}:plain`)

    for (const [name, podsEach] of [['1-pod', 1], ['3-pods', 3]] as const) {
      await bindDestinations(client, keyPrefix, { name, count: idCount, podsEach, podCount })
      const ids = Array.from({ length: idCount }, (_, at) => `${name}-${at}`)
      const resolve = (turn: number): Promise<unknown> => found(registry.resolveDestination(ids[turn % idCount] as string))
      await bench.compare({
        meter,
        control: 'resolve',
        sides: {
          resolve: { label: 'resolveDestination', run: inFlight(64, resolve) },
          get: { label: 'GET', run: inFlight(64, get) }
        },
        pairs: [{ id: `uncached/${name}/64-in-flight`, measured: 'resolve', limit: 'get', figure: 'cpu' }]
      })
      await bench.compare({
        meter,
        control: 'resolve',
        sides: {
          resolve: { label: 'resolveDestination', run: oneByOne(resolve) },
          get: { label: 'GET', run: oneByOne(get) }
        },
        pairs: [{ id: `uncached/${name}/1-in-flight`, measured: 'resolve', limit: 'get', figure: 'p50' }]
      })
    }
  }
}
