import { Findings } from './findings.ts'
import { Load } from './load.ts'
import { StatefulTraffic } from './stateful-traffic.ts'
import { StorageTraffic } from './storage-traffic.ts'
import type { Traffic } from './traffic.ts'
import type { World } from './world.ts'

export interface StartLoadOptions {
  /** How many destinations (tenants), or their ids. @defaultValue 12 */
  destinations?: number | readonly string[]
  /** Keys of each tenant; storage-db only. @defaultValue 2 */
  keysPerTenant?: number
  /** Requests under way at once. @defaultValue one for each destination */
  lanes?: number
  /** Milliseconds a lane rests after an answer. @defaultValue 40 */
  pace?: number
  /** Part of the requests that are reads. @defaultValue 0.25 */
  reads?: number
}

/** Starts clients that write and read through all running coordinators, with their ledgers. */
export async function startLoad (world: World, options: StartLoadOptions = {}): Promise<Load> {
  return await start(world, options, traffic => world.kind === 'stateful' ? toStateful(world, traffic) : new StorageTraffic(traffic, options.keysPerTenant ?? 2))
}

/** As `startLoad`, for scenarios that look at numbers and owners of stateful pods. */
export async function startStatefulLoad (world: World, options: StartLoadOptions = {}): Promise<Load<StatefulTraffic>> {
  return await start(world, options, traffic => toStateful(world, traffic))
}

/** As `startLoad`, for scenarios of storage-db alone. */
export async function startStorageLoad (world: World, options: StartLoadOptions = {}): Promise<Load<StorageTraffic>> {
  return await start(world, options, traffic => new StorageTraffic(traffic, options.keysPerTenant ?? 2))
}

type Make<T> = (options: ConstructorParameters<typeof StorageTraffic>[0]) => T

function toStateful (world: World, options: ConstructorParameters<typeof StorageTraffic>[0]): StatefulTraffic {
  const { tables } = world.parts
  if (tables === undefined) throw new Error('This world has no stateful pods')
  return new StatefulTraffic(options, tables)
}

async function start<T extends Traffic> (world: World, { destinations = 12, lanes, pace = 40, reads = 0.25 }: StartLoadOptions, make: Make<T>): Promise<Load<T>> {
  const destinationIds = typeof destinations === 'number' ? Array.from({ length: destinations }, (_, i) => `destination-${i + 1}`) : destinations
  const findings = new Findings()
  const traffic = make({ client: world.parts.client, findings, landing: world.landing, destinationIds })
  await traffic.prepare(world.urls[0] ?? '')
  const load = new Load({ traffic, findings, coordinators: () => world.urls, check: () => world.check(), lanes: lanes ?? destinationIds.length, paceMs: pace, readShare: reads })
  world.onClose(() => load.stop())
  return load
}
