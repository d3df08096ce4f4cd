import type { RouteGenericInterface } from 'fastify'
import type { Registry } from '../registry.ts'
import { checkCallback, checkRegistry } from './check-options.ts'
import { handle, notFound, takeId } from './proxy.ts'
import type { AnyRoute, HelperHandler, LookupLockAndProxyOptions } from './types.ts'

/**
 * Makes a route handler that sends each request to the pod that holds its lock. Results: `hit`, `not_found`, and those every helper has.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function lookupLockAndProxy<R extends RouteGenericInterface = AnyRoute> (registry: Registry, options: LookupLockAndProxyOptions<R>): HelperHandler<R> {
  const { lockFrom } = options ?? {}
  checkRegistry(registry)
  checkCallback('lockFrom', lockFrom)
  return handle(options, {
    async resolve ({ request }) {
      const held = await registry.resolveLock(await takeId(lockFrom, request))
      return held === null ? notFound(options) : { memberId: held.memberId, address: held.address, result: 'hit' }
    },
    onUnreachable: ({ memberId }) => registry.reportUnreachable(memberId)
  })
}
