import { until } from '../../test/support/store.ts'
import type { Load } from './load.ts'
import type { World } from './world.ts'

/**
 * Writes what a scenario itself left uncertain, beside the units of the load, again until that settles it: `world.finish` would wait for it in
 * vain. A write that came through late would show afterwards as a value that was overwritten, so read those keys once more.
 */
export async function settleOthers (world: World, load: Load): Promise<void> {
  const isOfLoad = new Set(load.traffic.units.map(({ destinationId, key }) => key === '' ? destinationId : `${destinationId}/${key}`))
  await until(async () => {
    world.check()
    const names = load.traffic.uncertain.filter(name => !isOfLoad.has(name))
    // One at a time: all at once they would be a load that saturates a tenant.
    for (const name of names) {
      const [destinationId = '', key = ''] = name.split('/')
      await load.traffic.write(world.urls[0] ?? '', { destinationId, key })
    }
    return names.length === 0
  }, 'later writes have settled what was left open')
}
