import fc from 'fast-check'

/** Processes of this library: two incarnations of pod-a, one of pod-b. */
export const processIds = { a1: 'pod-a', a2: 'pod-a', b1: 'pod-b' } as const
/** Pods whose records other software writes. */
export const rawIds = ['raw-c', 'raw-d'] as const
export const memberIds = ['pod-a', 'pod-b', ...rawIds] as const
export const destinationIds = ['d:1', 'd 2', 'd{3}'] as const
/** `cached` keeps answers for a minute, `plain` none. */
export const registryNames = ['cached', 'plain'] as const

export type ProcessName = keyof typeof processIds
export type RegistryName = typeof registryNames[number]

export type Step =
  | { do: 'register' | 'heartbeat' | 'drain' | 'undrain' | 'deregister', process: ProcessName }
  | { do: 'memberAdd' | 'memberRemove', process: ProcessName, destinationId: string }
  | { do: 'writeRaw' | 'drainRaw' | 'undrainRaw', memberId: string }
  | { do: 'expire', memberId: string, byTtl: boolean }
  | { do: 'resolve', registry: RegistryName, destinationId: string, claimOnMiss: boolean, reassignOrphans: boolean }
  | { do: 'race', destinationId: string }
  | { do: 'add' | 'remove', registry: RegistryName, destinationId: string, memberId: string }
  | { do: 'deregisterDestination', registry: RegistryName, destinationId: string }
  | { do: 'prune', registry: RegistryName }

const process = fc.constantFrom(...Object.keys(processIds) as ProcessName[])
const registry = fc.constantFrom(...registryNames)
const destinationId = fc.constantFrom(...destinationIds)
const memberId = fc.constantFrom(...memberIds)
const rawId = fc.constantFrom(...rawIds)
const mostly = fc.constantFrom(true, true, true, false)

/** A step; registrations and claims come up often, so that most sequences have something to break. */
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('register' as const), process }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('heartbeat' as const), process }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('drain' as const, 'undrain' as const, 'deregister' as const), process }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('memberAdd' as const, 'memberRemove' as const), process, destinationId }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('writeRaw' as const, 'drainRaw' as const, 'undrainRaw' as const), memberId: rawId }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('expire' as const), memberId, byTtl: fc.boolean() }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('resolve' as const), registry, destinationId, claimOnMiss: mostly, reassignOrphans: mostly }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('race' as const), destinationId }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'remove' as const), registry, destinationId, memberId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deregisterDestination' as const), registry, destinationId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('prune' as const), registry }) }
)

/** Pods that are there already when most sequences begin: a fleet that is up has more to lose than an empty one. */
const fleetUp: Step[] = [
  { do: 'register', process: 'a1' },
  { do: 'register', process: 'b1' },
  { do: 'writeRaw', memberId: 'raw-c' }
]

/** A hot destination on several pods, of which one may die. */
const fanOut: fc.Arbitrary<Step[]> = fc.record({ destinationId, registry, memberIds: fc.uniqueArray(memberId, { minLength: 2 }) })
  .map(({ destinationId, registry, memberIds }) => memberIds.map(memberId => ({ do: 'add', registry, destinationId, memberId })))

const preludes: fc.Arbitrary<Step[]> = fc.oneof(
  fc.constant<Step[]>([]),
  fc.constant(fleetUp),
  fc.constant<Step[]>([...fleetUp, { do: 'register', process: 'a2' }]),
  fanOut.map(adds => [...fleetUp, ...adds])
)

export const steps: fc.Arbitrary<Step[]> = fc.tuple(preludes, fc.array(step, { minLength: 5, maxLength: 30, size: 'max' }))
  .map(([prelude, rest]) => [...prelude, ...rest])
