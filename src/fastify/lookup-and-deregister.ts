import type { RouteGenericInterface } from 'fastify'
import type { Registry } from '../registry.ts'
import { checkCallback, checkRegistry, isExpected } from './check-options.ts'
import { handle, refuseWithoutPod, takeId } from './proxy.ts'
import { refuse } from './refusal.ts'
import type { AnyRoute, HelperHandler, LookupAndDeregisterOptions } from './types.ts'

/**
 * Makes a route handler that sends each delete to the pod of its destination, and forgets the destination once the pod said that it is gone.
 * A destination of which all pods are dead is forgotten without one, 204, unless `reassignOrphans` has another pod asked.
 * Results: `deregistered`, `deregistered_dead_pod`, `not_found`, `upstream_error` (another status: nothing is forgotten), and those every helper has.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function lookupAndDeregister<R extends RouteGenericInterface = AnyRoute> (registry: Registry, options: LookupAndDeregisterOptions<R>): HelperHandler<R> {
  const { destinationFrom, expectedStatus, claimOnMiss = false, reassignOrphans = false } = options ?? {}
  checkRegistry(registry)
  checkCallback('destinationFrom', destinationFrom)
  const flags = { claimOnMiss, reassignOrphans }

  return handle(options, {
    async resolve (exchange) {
      const destinationId = exchange.destinationId = await takeId(destinationFrom, exchange.request)
      const resolved = await registry.resolveDestination(destinationId, flags)
      if (resolved !== null) return { memberId: resolved.memberId, address: resolved.address, destinationId }
      if (!reassignOrphans && await registry.deregisterDestination(destinationId, { ifOrphaned: true })) throw refuse('PLT_COORDINATOR_DEAD_POD')
      return await refuseWithoutPod(registry, destinationId, options)
    },
    onUnreachable: ({ memberId, destinationId }) => registry.reportUnreachable(memberId, destinationId),
    async onReply (exchange, target, podReply) {
      const isGone = isExpected(podReply.statusCode, expectedStatus, status => status === 204)
      // Only while the pod that answered still has it: another may have been given the destination meanwhile.
      if (isGone && target.destinationId !== undefined) await registry.deregisterDestination(target.destinationId, { ifHolds: target.memberId })
      exchange.tell(isGone ? 'deregistered' : 'upstream_error')
      exchange.deliver(podReply)
    }
  })
}
