import type { RouteGenericInterface } from 'fastify'
import type { Registry } from '../registry.ts'
import { checkCallback, checkRegistry } from './check-options.ts'
import type { Exchange } from './exchange.ts'
import { handle, refuseWithoutPod, takeId } from './proxy.ts'
import type { Refusal } from './refusal.ts'
import type { AnyRoute, HelperHandler, LookupAndProxyOptions, ProxyTarget } from './types.ts'

/**
 * Makes a route handler that sends each request to the pod of its destination.
 * Results: `hit`, `orphan_reassigned`, `not_found`, and those every helper has.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function lookupAndProxy<R extends RouteGenericInterface = AnyRoute> (registry: Registry, options: LookupAndProxyOptions<R>): HelperHandler<R> {
  const { destinationFrom, claimOnMiss = false, reassignOrphans = false } = options ?? {}
  checkRegistry(registry)
  checkCallback('destinationFrom', destinationFrom)
  const flags = { claimOnMiss, reassignOrphans }

  return handle(options, {
    resolve (exchange) {
      const id = takeId(destinationFrom, exchange.request)
      return typeof id === 'string' ? lookUp(exchange, id) : id.then(id => lookUp(exchange, id))
    },
    onUnreachable: ({ memberId, destinationId }) => registry.reportUnreachable(memberId, destinationId)
  })

  async function lookUp (exchange: Exchange, destinationId: string): Promise<ProxyTarget | Refusal> {
    exchange.destinationId = destinationId
    const resolved = await registry.resolveDestination(destinationId, flags)
    if (resolved === null) return await refuseWithoutPod(registry, destinationId, options)
    return { memberId: resolved.memberId, address: resolved.address, destinationId, result: resolved.reassigned ? 'orphan_reassigned' : 'hit' }
  }
}
