import fp from 'fastify-plugin'
import type { FastifyInstance } from 'fastify'
import type { FastifyReplyFromOptions } from '@fastify/reply-from'
import { expected } from '../options.ts'
import { Registry } from '../registry.ts'
import type { RegistryOptions } from '../types.ts'
import { checkProxyOptions, checkRegistry } from './check-options.ts'
import { exactBodies } from './exact-bodies.ts'
import { lookupAndDeregister } from './lookup-and-deregister.ts'
import { lookupAndProxy } from './lookup-and-proxy.ts'
import { lookupLockAndProxy } from './lookup-lock-and-proxy.ts'
import { pickAndRegister } from './pick-and-register.ts'
import type { Coordinator, CoordinatorPluginOptions } from './types.ts'
import { acceptUpgrades } from './upgrade.ts'
import { createUpstream, isSender, upstreamKey } from './upstream.ts'

/**
 * Fastify plugin of the caller side: puts a registry and the four helpers on the application, under `coordinator` or the name of
 * `decorateAs`. May be registered several times under several names. Register it before the routes that use it.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export const coordinatorPlugin = fp(async (app: FastifyInstance, options: CoordinatorPluginOptions) => {
  const { registry: brought, decorateAs = 'coordinator', registerReplyFrom = true, replyFrom, requestTimeout, idleTimeout, ...registryOptions } = options
  const defaults = { requestTimeout, idleTimeout }
  checkProxyOptions(defaults)
  if (typeof decorateAs !== 'string' || decorateAs === '') throw expected('decorateAs', 'a non-empty string', decorateAs)
  if (typeof registerReplyFrom !== 'boolean') throw expected('registerReplyFrom', 'a boolean', registerReplyFrom)
  if (brought !== undefined) checkRegistry(brought)
  if (replyFrom !== undefined && (typeof replyFrom !== 'object' || replyFrom === null)) throw expected('replyFrom', 'an object', replyFrom)
  if (app.hasDecorator(decorateAs)) throw expected('decorateAs', 'a name that is not taken on the application', decorateAs)

  const hasReplyFrom = app.hasReplyDecorator('from')
  if (!hasReplyFrom && !registerReplyFrom) throw expected('registerReplyFrom', 'true, or @fastify/reply-from registered before the coordinator', registerReplyFrom)
  if (replyFrom?.base !== undefined) throw expected('replyFrom.base', 'absent, since each request has a pod of its own', replyFrom.base)

  await app.register(exactBodies)
  acceptUpgrades(app)
  if (!hasReplyFrom) await registerSender(app, replyFrom)

  const registry = brought ?? new Registry(registryOptions as RegistryOptions)
  if (brought === undefined) app.addHook('onClose', async () => await registry.close())
  const coordinator: Coordinator = {
    registry,
    lookupAndProxy: options => lookupAndProxy(registry, { ...defaults, ...options }),
    pickAndRegister: options => pickAndRegister(registry, { ...defaults, ...options }),
    lookupAndDeregister: options => lookupAndDeregister(registry, { ...defaults, ...options }),
    lookupLockAndProxy: options => lookupLockAndProxy(registry, { ...defaults, ...options })
  }
  app.decorate(decorateAs, coordinator)
}, { name: '@platformatic/coordinator', fastify: '5.x' })

async function registerSender (app: FastifyInstance, options: FastifyReplyFromOptions = {}): Promise<void> {
  // Only now, so that a process that runs a Member alone never loads undici.
  const { default: replyFrom } = await import('@fastify/reply-from')
  const undici = options.undici as unknown
  // A dispatcher that was brought is not ours to end.
  const shared = { disableRequestLogging: true, destroyAgent: !isSender(undici), ...options }
  if (options.http !== undefined || options.http2 !== undefined || options.globalAgent === true || undici === false) return await app.register(replyFrom, shared)
  if (typeof undici === 'object' && undici !== null && 'proxy' in undici) throw expected('replyFrom.undici.proxy', 'absent; pass a ProxyAgent as replyFrom.undici', undici.proxy)
  app.decorate(upstreamKey, true)
  await app.register(replyFrom, { ...shared, undici: createUpstream(options.undici) as never })
}
