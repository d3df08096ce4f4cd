import type { RowGroup } from '../bench.ts'
import { addMembers } from '../fixtures.ts'
import { forkRegistries, openRegistries, processCount, registriesEach } from './registries.ts'

const podCount = 100
const ordinaryLoad = 50

/** Where a burst of claims lands while no pod tells its load: counted, not timed. */
export const placement: RowGroup = {
  name: 'placement',
  async run (bench) {
    const client = bench.connect()
    const claimCount = bench.size(10_000, 200)
    const forked = forkRegistries(bench)
    const ratios: number[] = []
    for (let trial = 0; trial < bench.size(5, 1); trial++) {
      const keyPrefix = bench.createPrefix(client)
      const loads = new Map(Array.from({ length: podCount }, (_, at) => [`pod-${at}`, at === 0 ? 0 : ordinaryLoad]))
      await addMembers(bench, client, keyPrefix, podCount, at => ({ getLoad: () => at === 0 ? 0 : ordinaryLoad }))
      await openRegistries(bench, forked, keyPrefix, 'least-loaded')
      const claims = await forked.ask<Map<string, number>>('claim', at => ({
        keyPrefix,
        count: claimCount / processCount,
        concurrency: 64 * registriesEach,
        name: `new-${at}`
      }))
      for (const counts of claims) {
        for (const [memberId, count] of counts) loads.set(memberId, (loads.get(memberId) ?? NaN) + count)
      }
      ratios.push(Math.max(...loads.values()) / levelOf(claimCount))
    }
    bench.report('placement/fresh-pod', 'highest load over the perfect level', ratios, `${claimCount} claims, 64 in flight in each of 16 registries; ${ratios.length} trials, the worst is judged`)
  }
}

/** The level to which a perfect placement fills the pods: the fresh one first, then all alike. */
function levelOf (claimCount: number): number {
  const level = ((podCount - 1) * ordinaryLoad + claimCount) / podCount
  return Math.max(level, ordinaryLoad)
}
