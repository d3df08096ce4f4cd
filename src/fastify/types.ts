import type { FastifyReply, FastifyRequest, RawReplyDefaultExpression, RawRequestDefaultExpression, RawServerDefault, RouteGenericInterface, RouteHandlerMethod } from 'fastify'
import type { FastifyReplyFromHooks, FastifyReplyFromOptions } from '@fastify/reply-from'
import type { Registry } from '../registry.ts'
import type { RegistryOptions } from '../types.ts'

/** What became of a request, told once to `onResult`. */
export type HelperResult =
  | 'hit' | 'orphan_reassigned' | 'not_found'
  | 'spawned' | 'unavailable' | 'refused' | 'upstream_error'
  | 'deregistered' | 'deregistered_dead_pod'
  | 'bad_request' | 'unreachable' | 'timeout' | 'aborted' | 'store_unavailable'

/** The route a helper serves when none is given: any parameters, each a text. */
export interface AnyRoute extends RouteGenericInterface {
  Params: Record<string, string>
}

export type HelperRequest<R extends RouteGenericInterface> = FastifyRequest<R>
export type HelperHandler<R extends RouteGenericInterface> =
  RouteHandlerMethod<RawServerDefault, RawRequestDefaultExpression, RawReplyDefaultExpression, R>

/** An id taken from a request: numbers are used as text; anything but a number or a non-empty text is answered 400. */
export type IdFrom<R extends RouteGenericInterface> = (request: HelperRequest<R>) => string | number | undefined | null | Promise<string | number | undefined | null>

/** Options of `proxyVia`, and so of all four helpers. */
export interface ProxyOptions<R extends RouteGenericInterface = AnyRoute> {
  /** Called once for each request. Its throwing costs nothing. */
  onResult?: ((result: HelperResult, request: HelperRequest<R>) => unknown) | undefined
  /** Milliseconds from the last byte of the request sent to the headers of the reply; then 504. @defaultValue none */
  requestTimeout?: number | undefined
  /** Milliseconds the pod may pause within its reply before it is cut. @defaultValue none */
  idleTimeout?: number | undefined
  /** Parse `request.body` for your callbacks; the pod still gets the bytes that came. @defaultValue false, or true when the route has a body schema */
  parseBody?: boolean | undefined
  /** Status when the destination has no pod to go to; 503 says that trying again may help. @defaultValue 404 */
  noPodStatus?: number | undefined
  /** `error` of the answer when nothing was found. @defaultValue 'Not Found' */
  notFoundMessage?: string | undefined
  /** Changes the headers the pod gets, after the helper's own duty. */
  rewriteRequestHeaders?: FastifyReplyFromHooks['rewriteRequestHeaders'] | undefined
  /** Changes the headers the client gets, after the helper's own duty. */
  rewriteHeaders?: FastifyReplyFromHooks['rewriteHeaders'] | undefined
  /** Answers in the helper's place when the pod could not be reached, was cut before its reply, or was too slow. */
  onError?: ((reply: FastifyReply<R>, failure: { error: Error, statusCode: number, code: string }) => unknown) | undefined
}

/** Where a request is to go. */
export interface ProxyTarget {
  memberId: string
  /** Base URL of the pod. */
  address: string
  /** For the log, and to evict what is cached of it when the pod refuses the connection. */
  destinationId?: string | undefined
  /** The result to tell when the pod replied. @defaultValue 'hit' */
  result?: HelperResult | undefined
}

/** Options of the helpers that look a destination up. */
export interface LookupOptions<R extends RouteGenericInterface = AnyRoute> extends ProxyOptions<R> {
  destinationFrom: IdFrom<R>
  /** Bind a live pod when the destination has none. @defaultValue false */
  claimOnMiss?: boolean | undefined
  /** Replace the pods of a destination when all of them are dead. @defaultValue false */
  reassignOrphans?: boolean | undefined
}

export interface LookupAndProxyOptions<R extends RouteGenericInterface = AnyRoute> extends LookupOptions<R> {
  /** Splice upgrades (WebSocket) through to the pod as well; needs the plugin. @defaultValue false: 501 */
  websocket?: boolean | undefined
}

export interface LookupLockAndProxyOptions<R extends RouteGenericInterface = AnyRoute> extends ProxyOptions<R> {
  lockFrom: IdFrom<R>
  /** As for `lookupAndProxy`. @defaultValue false */
  websocket?: boolean | undefined
}

/** What `registerIdFrom` may look at beside the parsed body. */
export interface CreateReply<R extends RouteGenericInterface = AnyRoute> {
  statusCode: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  request: HelperRequest<R>
}

export interface PickAndRegisterOptions<R extends RouteGenericInterface = AnyRoute> extends ProxyOptions<R> {
  /** Finds the new destination's id in the pod's parsed JSON reply; a number is bound as text. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the pod's JSON, whose shape only the application knows
  registerIdFrom: (body: any, reply: CreateReply<R>) => unknown
  /** The status, or statuses, of success. @defaultValue every 2xx */
  expectedStatus?: number | readonly number[] | undefined
  /** When the id is bound to other pods already: add this one, or answer 409. @defaultValue 'add' */
  ifBound?: 'add' | 'refuse' | undefined
  /** `error` of the 503 when no pod takes anything new. @defaultValue 'Service Unavailable' */
  unavailableMessage?: string | undefined
  /** `error` of the 503 when the pod began to drain meanwhile, and of the 409. @defaultValue 'Service Unavailable' */
  refusedMessage?: string | undefined
  /** Replies larger than this many bytes are passed on and nothing is bound. @defaultValue 1048576 */
  replyLimit?: number | undefined
}

/** With `claimOnMiss` and `reassignOrphans` a pod is asked in any case: for an application whose data are not in its pods alone. */
export interface LookupAndDeregisterOptions<R extends RouteGenericInterface = AnyRoute> extends LookupOptions<R> {
  /** The status, or statuses, on which the destination is forgotten. @defaultValue 204 */
  expectedStatus?: number | readonly number[] | undefined
}

export interface CoordinatorPluginOptions extends Omit<RegistryOptions, 'redis'> {
  /** As for the Registry; not needed with `registry`. */
  redis?: RegistryOptions['redis'] | undefined
  /** A Registry to use, which stays open when the application closes. */
  registry?: Registry | undefined
  /** Name of the decorator. @defaultValue 'coordinator' */
  decorateAs?: string | undefined
  /** `requestTimeout` of every helper that does not set its own. @defaultValue none */
  requestTimeout?: number | undefined
  /** `idleTimeout` of every helper that does not set its own. @defaultValue none */
  idleTimeout?: number | undefined
  /** Options of @fastify/reply-from; `undici` may hold options of an Agent, or a dispatcher. */
  replyFrom?: FastifyReplyFromOptions | undefined
  /** False when the application registers @fastify/reply-from itself. @defaultValue true */
  registerReplyFrom?: boolean | undefined
}

/** What the plugin puts on the application. */
export interface Coordinator {
  readonly registry: Registry
  lookupAndProxy<R extends RouteGenericInterface = AnyRoute> (options: LookupAndProxyOptions<R>): HelperHandler<R>
  pickAndRegister<R extends RouteGenericInterface = AnyRoute> (options: PickAndRegisterOptions<R>): HelperHandler<R>
  lookupAndDeregister<R extends RouteGenericInterface = AnyRoute> (options: LookupAndDeregisterOptions<R>): HelperHandler<R>
  lookupLockAndProxy<R extends RouteGenericInterface = AnyRoute> (options: LookupLockAndProxyOptions<R>): HelperHandler<R>
}

declare module 'fastify' {
  interface FastifyInstance {
    coordinator: Coordinator
  }
  interface FastifyContextConfig {
    /** `raw`: one of our helpers is called inside this route's own handler, so its body is passed on as it comes. */
    coordinator?: { raw?: boolean }
  }
}
