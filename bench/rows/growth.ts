import type { Redis } from 'iovalkey'
import { Registry } from '@platformatic/coordinator'
import type { StrategyName } from '@platformatic/coordinator'
import type { Bench, RowGroup } from '../bench.ts'
import type { Side } from '../compare.ts'
import { addMembers, bindDestinations, found, inFlight, scatter, touchNew } from '../fixtures.ts'
import { startOwnStore } from '../stores.ts'

const keyPrefix = 'coordinator'
const walks = ['keys', 'scan', 'sscan', 'hscan', 'zscan']

/** One size of a deployment, in a store of its own: in one store the small case would have the large one's key table. */
interface Deployment {
  readonly client: Redis
  readonly resolve: Side
  readonly claim: Side
  readonly claimLeastLoaded: Side
}

interface Size {
  readonly label: string
  readonly destinations: number
  readonly pods: number
}

/** Whether what a call costs goes by how much there is. */
export const growth: RowGroup = {
  name: 'growth',
  async run (bench) {
    let walked = 0
    const few = await deploy(bench, { label: '1,000 destinations, 10 pods', destinations: bench.size(1000, 100), pods: 10 })
    if (['resolve', 'claim'].some(what => bench.wants(`growth/destinations/${what}`)) || bench.wants('growth/scans')) {
      const many = await deploy(bench, { label: '1,000,000 destinations, 10 pods', destinations: bench.size(1_000_000, 2000), pods: 10 })
      walked += await compareSizes(bench, 'destinations', few, many)
    }
    const pods = await deploy(bench, { label: '1,000 destinations, 1,000 pods', destinations: bench.size(1000, 100), pods: bench.size(1000, 150) })
    walked += await compareSizes(bench, 'pods', few, pods)
    if (bench.wants('growth/scans')) bench.report('growth/scans', 'calls of commands that walk', [walked])
  }
}

/** Starts a store and fills it. */
async function deploy (bench: Bench, { label, destinations, pods }: Size): Promise<Deployment> {
  const url = await startOwnStore(bench)
  const client = bench.connect(url)
  const meter = bench.createMeter(undefined, url)
  await addMembers(bench, client, keyPrefix, pods)
  await bindDestinations(client, keyPrefix, { name: 'bound', count: destinations, podsEach: 1, podCount: pods })
  const open = (strategy: StrategyName): Registry => {
    const registry = new Registry({ redis: client, keyPrefix, strategy, cache: false })
    bench.atEnd(() => registry.close())
    return registry
  }
  const claim = (strategy: StrategyName): Side => {
    const registry = open(strategy)
    return { label: `${strategy} claim, ${label}`, meter, ...touchNew(client, keyPrefix, id => found(registry.resolveDestination(id, { claimOnMiss: true }))) }
  }
  const registry = open('round-robin')
  const next = scatter(destinations)
  return {
    client,
    resolve: { label: `resolve, ${label}`, meter, run: inFlight(64, () => found(registry.resolveDestination(`bound-${next()}`))) },
    claim: claim('round-robin'),
    claimLeastLoaded: claim('least-loaded')
  }
}

/** Resolves to the calls of commands that walk. */
async function compareSizes (bench: Bench, dimension: 'destinations' | 'pods', small: Deployment, large: Deployment): Promise<number> {
  const kinds = [['resolve', 'resolve'], ['claim', 'claim'], ...(dimension === 'pods' ? [['claimLeastLoaded', 'claim-least-loaded']] as const : [])] as const
  const walksBefore = await countWalks(small.client) + await countWalks(large.client)
  for (const [kind, name] of kinds) {
    for (const side of [small[kind], large[kind]]) {
      // What is counted has to have happened, whichever rows were asked for.
      await side.run(1000)
      await side.clean?.()
    }
    await bench.compare({
      meter: small[kind].meter ?? bench.createMeter(),
      control: 'large',
      sides: { small: small[kind], large: large[kind] },
      pairs: [{ id: `growth/${dimension}/${name}`, measured: 'large', limit: 'small', figure: 'cpu' }]
    })
  }
  return await countWalks(small.client) + await countWalks(large.client) - walksBefore
}

async function countWalks (client: Redis): Promise<number> {
  const text = await client.call('INFO', 'commandstats') as string
  return walks.reduce((sum, name) => sum + Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0)
}
