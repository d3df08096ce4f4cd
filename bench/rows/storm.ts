import { Registry } from '@platformatic/coordinator'
import type { ResolveOptions } from '@platformatic/coordinator'
import type { RowGroup } from '../bench.ts'
import { addMembers, bindDestinations, found, inFlight, removeDestinations } from '../fixtures.ts'

const flags: ResolveOptions = { claimOnMiss: true, reassignOrphans: true }

/** The destinations of a dead pod, all asked for again, against as many that were never bound. */
export const storm: RowGroup = {
  name: 'storm',
  async run (bench) {
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const count = bench.size(10_000, 64)
    await addMembers(bench, client, keyPrefix, 10)
    const registry = new Registry({ redis: client, keyPrefix })
    bench.atEnd(() => registry.close())
    const ids = (name: string): string[] => Array.from({ length: count }, (_, at) => `${name}-${at}`)
    const [orphans, untouched] = [ids('orphan'), ids('new')]
    const forget = async (ids: readonly string[]): Promise<void> => {
      await removeDestinations(client, keyPrefix, ids)
      for (const id of ids) registry.invalidateCache(id)
    }

    await bench.compare({
      meter: bench.createMeter(),
      control: 'reassign',
      operations: count,
      sides: {
        reassign: {
          label: 'reassignment',
          prepare: async () => {
            await forget(orphans)
            // pod-10 is the first that was never registered.
            await bindDestinations(client, keyPrefix, { name: 'orphan', count, podsEach: 1, podCount: 1, firstPod: 10 })
          },
          run: inFlight(64, async turn => {
            const { reassigned } = await found(registry.resolveDestination(orphans[turn] as string, flags))
            if (!reassigned) throw new Error('The bench is wrong: the destination had a live pod')
          })
        },
        claim: {
          label: 'first touch',
          prepare: () => forget(untouched),
          run: inFlight(64, turn => found(registry.resolveDestination(untouched[turn] as string, flags)))
        }
      },
      pairs: [{ id: 'storm/reassign', measured: 'reassign', limit: 'claim', figure: 'cpu' }]
    })
  }
}
