export { CoordinatorError, isCoordinatorError } from './errors.ts'
export type { CoordinatorErrorCode } from './errors.ts'
export { diagnosticsChannels } from './diagnostics.ts'
export type { DiagnosticsEvent, DiagnosticsEvents } from './diagnostics.ts'
export { Member } from './member.ts'
export { Registry } from './registry.ts'
export { createStrategy } from './strategies/create-strategy.ts'
export type {
  AllocationStrategy,
  BoundPod,
  CacheOptions,
  Candidate,
  LockMetadata,
  MemberInfo,
  MemberOptions,
  PickMemberOptions,
  RegistryOptions,
  ResolvedDestination,
  ResolvedLock,
  ResolveOptions,
  StoreClient,
  StoreOptions,
  StrategyContext,
  StrategyName
} from './types.ts'
