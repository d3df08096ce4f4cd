import type { RouteGenericInterface } from 'fastify'
import type { Registry } from '../registry.ts'
import { checkCallback, checkRegistry } from './check-options.ts'
import { handle, notFound, takeId } from './proxy.ts'
import { refuse } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { AnyRoute, HelperHandler, LookupAndProxyOptions } from './types.ts'

/**
 * Makes a route handler that sends each request to the pod of its destination.
 * Results: `hit`, `orphan_reassigned`, `not_found`, and those every helper has.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function lookupAndProxy<R extends RouteGenericInterface = AnyRoute> (registry: Registry, options: LookupAndProxyOptions<R>): HelperHandler<R> {
  const { destinationFrom, claimOnMiss = false, reassignOrphans = false, noPodStatus } = options ?? {}
  checkRegistry(registry)
  checkCallback('destinationFrom', destinationFrom)
  const flags = { claimOnMiss, reassignOrphans }

  return handle(options, request => ({
    async resolve () {
      const destinationId = this.destinationId = await takeId(destinationFrom, request)
      const resolved = await registry.resolveDestination(destinationId, flags)
      if (resolved === null) return await refuseFor(destinationId)
      return { memberId: resolved.memberId, address: resolved.address, destinationId, result: resolved.reassigned ? 'orphan_reassigned' : 'hit' }
    },
    onUnreachable: ({ memberId, destinationId }) => registry.reportUnreachable(memberId, destinationId)
  }))

  // `noPodStatus` is said where trying again may help: pods are missing. What was never bound stays 404.
  async function refuseFor (destinationId: string): Promise<Refusal> {
    const isPodMissing = noPodStatus !== undefined && (claimOnMiss || await registry.hasBinding(destinationId))
    return isPodMissing ? notFound(options) : refuse('PLT_COORDINATOR_NOT_FOUND', { error: options.notFoundMessage })
  }
}
