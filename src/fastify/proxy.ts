import type { FastifyReply, FastifyRequest, RouteGenericInterface } from 'fastify'
import type { Registry } from '../registry.ts'
import { checkCallback, checkProxyOptions } from './check-options.ts'
import { markHandler } from './exact-bodies.ts'
import { Exchange } from './exchange.ts'
import type { Route } from './exchange.ts'
import { refuse } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import { spliceUpgrade } from './splice.ts'
import type { AnyRoute, HelperHandler, HelperRequest, IdFrom, LookupOptions, ProxyOptions, ProxyTarget } from './types.ts'
import { isUpgrade } from './upgrade.ts'

/**
 * Makes a route handler that sends each request to the pod `resolve` names, and passes its reply on unchanged; the four helpers rest on it.
 * Needs @fastify/reply-from on the application, best by the coordinator plugin.
 * @param resolve null: nothing to go to, answered with `noPodStatus`. Its errors are answered by their code: a 503 stays a 503.
 * @throws PLT_COORDINATOR_INVALID_OPTION
 */
export function proxyVia<R extends RouteGenericInterface = AnyRoute> (
  resolve: (request: HelperRequest<R>) => ProxyTarget | null | Promise<ProxyTarget | null>,
  options: ProxyOptions<R> & { onUnreachable?: ((target: ProxyTarget) => void) | undefined, websocket?: boolean | undefined } = {}
): HelperHandler<R> {
  checkCallback('resolve', resolve)
  return handle(options, {
    resolve ({ request }) {
      const target: ProxyTarget | null | PromiseLike<ProxyTarget | null> = resolve(request as HelperRequest<R>)
      if (isPending(target)) return Promise.resolve(target).then(target => target ?? notFound(options))
      return target ?? notFound(options)
    },
    onUnreachable: target => options.onUnreachable?.(target)
  })
}

/** Makes the handler of a helper. */
export function handle<R extends RouteGenericInterface> (options: ProxyOptions<R> & { websocket?: boolean | undefined }, route: Route): HelperHandler<R> {
  checkProxyOptions(options)
  const takesUpgrades = options.websocket === true
  const proxyOptions = options as ProxyOptions<never>
  // No async function: Fastify waits for the reply as it is, and a promise around it would only wait with it.
  const handler = (request: FastifyRequest, reply: FastifyReply): FastifyReply | Promise<FastifyReply> => {
    const exchange = new Exchange(request, reply, proxyOptions, route)
    if (isUpgrade(request)) return upgrade(exchange)
    exchange.start()
    return reply
  }
  const upgrade = async (exchange: Exchange): Promise<FastifyReply> => {
    if (takesUpgrades) await spliceUpgrade(exchange, route, proxyOptions)
    else exchange.refuse(refuse('PLT_COORDINATOR_UPGRADE_NOT_SUPPORTED'))
    return exchange.reply
  }
  return markHandler(handler, { parseBody: options.parseBody, takesUpgrades }) as unknown as HelperHandler<R>
}

export function notFound ({ noPodStatus, notFoundMessage }: ProxyOptions<never>): Refusal {
  return refuse('PLT_COORDINATOR_NOT_FOUND', { statusCode: noPodStatus, error: notFoundMessage })
}

/** Why a destination has no pod. `noPodStatus` is said where trying again may help: pods are missing. What was never bound stays 404. */
export async function refuseWithoutPod<R extends RouteGenericInterface> (registry: Registry, destinationId: string, options: LookupOptions<R>): Promise<Refusal> {
  const { claimOnMiss = false, noPodStatus } = options
  const isPodMissing = noPodStatus !== undefined && (claimOnMiss || await registry.hasBinding(destinationId))
  return notFound(isPodMissing ? options : { ...options, noPodStatus: undefined })
}

/** Takes an id from a request; a promise only where the application gives one. @throws a refusal, when there is none to take */
export function takeId<R extends RouteGenericInterface> (from: IdFrom<R>, request: FastifyRequest): string | Promise<string> {
  let id: unknown
  try {
    id = from(request as HelperRequest<R>)
  } catch (error) {
    throw refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause: error })
  }
  return isPending(id) ? takeLater(id) : checkTaken(id)
}

async function takeLater (pending: PromiseLike<unknown>): Promise<string> {
  let id: unknown
  try {
    id = await pending
  } catch (error) {
    throw refuse('PLT_COORDINATOR_CALLBACK_FAILED', { cause: error })
  }
  return checkTaken(id)
}

function checkTaken (id: unknown): string {
  if (typeof id === 'number' && Number.isFinite(id)) return String(id)
  if (typeof id === 'string' && id !== '') return id
  throw refuse('PLT_COORDINATOR_INVALID_ID')
}

function isPending<T> (value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
