import { Registry } from '@platformatic/coordinator'
import type { RowGroup } from '../bench.ts'
import { addMembers, found, inFlight } from '../fixtures.ts'

const lockCount = 1000

/** resolveLock, which is never cached. */
export const lock: RowGroup = {
  name: 'lock',
  async run (bench) {
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const members = await addMembers(bench, client, keyPrefix, 10)
    for (let at = 0; at < lockCount; at++) await members[at % members.length]?.registerLock(`lock-${at}`, `destination-${at}`)
    const registry = new Registry({ redis: client, keyPrefix })
    bench.atEnd(() => registry.close())
    await client.set(`${keyPrefix}:plain`, 'x')

    await bench.compare({
      meter: bench.createMeter(),
      control: 'resolve',
      sides: {
        resolve: { label: 'resolveLock', run: inFlight(64, turn => found(registry.resolveLock(`lock-${turn % lockCount}`))) },
        get: { label: 'GET', run: inFlight(64, () => client.get(`${keyPrefix}:plain`)) }
      },
      pairs: [{ id: 'lock/resolve', measured: 'resolve', limit: 'get', figure: 'cpu' }]
    })
  }
}
