export { coordinatorPlugin, coordinatorPlugin as default } from './fastify/plugin.ts'
export { exactBodies } from './fastify/exact-bodies.ts'
export { lookupAndDeregister } from './fastify/lookup-and-deregister.ts'
export { lookupAndProxy } from './fastify/lookup-and-proxy.ts'
export { lookupLockAndProxy } from './fastify/lookup-lock-and-proxy.ts'
export { pickAndRegister } from './fastify/pick-and-register.ts'
export { proxyVia } from './fastify/proxy.ts'
export type {
  AnyRoute,
  Coordinator,
  CoordinatorPluginOptions,
  CreateReply,
  HelperHandler,
  HelperRequest,
  HelperResult,
  IdFrom,
  LookupAndDeregisterOptions,
  LookupAndProxyOptions,
  LookupLockAndProxyOptions,
  PickAndRegisterOptions,
  ProxyOptions,
  ProxyTarget
} from './fastify/types.ts'
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
  DeregisterOptions,
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
