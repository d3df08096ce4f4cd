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

/** A step; registrations and claims come up often, so that most sequences have something to break. */
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('register' as const), process }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('heartbeat' as const, 'drain' as const, 'undrain' as const, 'deregister' as const), process }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('memberAdd' as const, 'memberRemove' as const), process, destinationId }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('writeRaw' as const, 'drainRaw' as const, 'undrainRaw' as const), memberId: rawId }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('expire' as const), memberId, byTtl: fc.boolean() }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('resolve' as const), registry, destinationId, claimOnMiss: fc.boolean(), reassignOrphans: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('race' as const), destinationId }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'remove' as const), registry, destinationId, memberId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deregisterDestination' as const), registry, destinationId }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('prune' as const), registry }) }
)

export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 5, maxLength: 30, size: 'max' })
