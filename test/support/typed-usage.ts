/* eslint-disable @typescript-eslint/no-unused-expressions */
// Compiled by types.test.ts (and by the repository's own tsc), never run: what users write must compile, and each `@ts-expect-error` must be one.
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'
import type { FastifyReply } from 'fastify'
import coordinatorPlugin, { exactBodies, lookupAndDeregister, lookupAndProxy, lookupLockAndProxy, pickAndRegister, proxyVia, Registry } from '@platformatic/coordinator'
import type { Coordinator, CoordinatorPluginOptions, HelperResult, LookupAndProxyOptions, ProxyTarget } from '@platformatic/coordinator'

type Is<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
function yes<T extends true> (): T | undefined { return undefined }

declare module 'fastify' {
  interface FastifyInstance {
    sessions: Coordinator
  }
}

const app = Fastify()

// The code of the contract, as it stands there.
await app.register(coordinatorPlugin, { redis: 'redis://valkey:6379', keyPrefix: 'myservice', strategy: 'least-loaded' })
app.get('/destinations/:id/work', app.coordinator.lookupAndProxy({ destinationFrom: req => req.params.id, claimOnMiss: true, reassignOrphans: true }))
app.post('/destinations', app.coordinator.pickAndRegister({ registerIdFrom: (res: { id: string }) => res.id }))
app.delete('/destinations/:id', app.coordinator.lookupAndDeregister({ destinationFrom: req => req.params.id }))
app.post('/transactions/:lockId/work', app.coordinator.lookupLockAndProxy({ lockFrom: req => req.params.lockId }))

const registry = new Registry({ redis: 'redis://valkey:6379', keyPrefix: 'myservice' })
const metrics = { inc (_labels: { type: string, result: string }): void {} }
await app.register(replyFrom)
await app.register(exactBodies)
app.get('/x/:id', lookupAndProxy(registry, { destinationFrom: r => r.params.id }))
app.post('/destinations/:id/work', lookupAndProxy(registry, {
  destinationFrom: req => req.params.id,
  reassignOrphans: true,
  onResult: result => metrics.inc({ type: 'work', result })
}))
app.post('/destinations2', pickAndRegister(registry, { registerIdFrom: (res: { id: number }) => res.id }))
app.delete('/destinations2/:id', lookupAndDeregister(registry, { destinationFrom: req => req.params.id, expectedStatus: [200, 204] }))
app.post('/transactions2/:lockId/work', lookupLockAndProxy(registry, { lockFrom: req => req.params.lockId }))

// The contract leaves the reply's type open.
app.post('/untyped', app.coordinator.pickAndRegister({ registerIdFrom: res => res.id }))

// Another name.
await app.register(coordinatorPlugin, { registry, decorateAs: 'sessions' })
app.get('/s/:id', app.sessions.lookupAndProxy({ destinationFrom: req => req.params.id }))
yes<Is<typeof app.sessions, Coordinator>>()
yes<Is<typeof app.sessions.registry, Registry>>()
// @ts-expect-error nobody declared it
app.elsewhere.registry

// Route generics flow into callbacks, and the handler fits the route of the same type.
interface WorkRoute {
  Params: { id: string }
  Querystring: { part: number }
  Body: { tenant: string }
  Headers: { 'x-tenant': string }
}
const typed = app.coordinator.lookupAndProxy<WorkRoute>({
  parseBody: true,
  destinationFrom: req => {
    yes<Is<typeof req.params, { id: string }>>()
    yes<Is<typeof req.query.part, number>>()
    yes<Is<typeof req.body.tenant, string>>()
    // @ts-expect-error not a parameter of the route
    req.params.other
    return req.params.id
  },
  onResult: (result, req) => {
    yes<Is<typeof result, HelperResult>>()
    yes<Is<typeof req.params.id, string>>()
  }
})
app.post<WorkRoute>('/work/:id', typed)
app.get<{ Params: { id: string } }>('/p/:id', app.coordinator.lookupAndProxy<{ Params: { id: string } }>({ destinationFrom: req => req.params.id }))
app.get<{ Params: { id: string } }>('/p2/:id', lookupLockAndProxy<{ Params: { id: string } }>(registry, { lockFrom: async req => req.params.id }))
app.delete<{ Params: { id: string } }>('/p3/:id', lookupAndDeregister<{ Params: { id: string } }>(registry, { destinationFrom: async req => Number(req.params.id) }))
// @ts-expect-error the route has other parameters than the handler was made for
app.get<{ Params: { other: number } }>('/p4/:other', app.coordinator.lookupAndProxy<{ Params: { id: string } }>({ destinationFrom: req => req.params.id }))
app.post<WorkRoute>('/work2/:id', app.coordinator.pickAndRegister<WorkRoute>({
  registerIdFrom: (body: { id: string }, { statusCode, headers, request }) => {
    yes<Is<typeof statusCode, number>>()
    yes<Is<typeof request.params, { id: string }>>()
    yes<Is<typeof headers.location, string | string[] | undefined>>()
    return body.id
  }
}))

// Ids: texts, numbers, nothing, and promises of them.
app.get('/i1', app.coordinator.lookupAndProxy({ destinationFrom: () => undefined }))
app.get('/i2', app.coordinator.lookupAndProxy({ destinationFrom: async () => null }))
app.get('/i3', app.coordinator.lookupAndProxy({ destinationFrom: () => 5 }))
// @ts-expect-error an object is no id
app.coordinator.lookupAndProxy({ destinationFrom: () => ({ id: 'x' }) })
// @ts-expect-error nor is a boolean, promised or not
app.coordinator.lookupLockAndProxy({ lockFrom: async () => true })

// What cannot be left out, and what does not exist.
// @ts-expect-error
app.coordinator.lookupAndProxy({})
// @ts-expect-error
app.coordinator.pickAndRegister({ destinationFrom: () => 'x' })
// @ts-expect-error
app.coordinator.lookupAndProxy({ destinationFrom: () => 'x', reassignOrphan: true })
// @ts-expect-error
app.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, ifBound: 'replace' })
// @ts-expect-error
app.coordinator.lookupLockAndProxy({ lockFrom: () => 'x', claimOnMiss: true })
// @ts-expect-error a standalone helper needs its registry
lookupAndProxy({ destinationFrom: () => 'x' })
// @ts-expect-error
app.register(coordinatorPlugin, { redis: 'redis://valkey:6379', decorateAs: 5 })
// @ts-expect-error
app.register(coordinatorPlugin, { redis: 'redis://valkey:6379', strategy: 'fastest' })
// @ts-expect-error
const wrong: CoordinatorPluginOptions = { redis: 'redis://valkey:6379', unknown: true }

// Options written apart, and undefined where nothing is to be said.
const apart: LookupAndProxyOptions = { destinationFrom: req => req.params.id, requestTimeout: undefined, onResult: undefined, websocket: false }
app.get('/apart/:id', app.coordinator.lookupAndProxy(apart))
const options: CoordinatorPluginOptions = { registry, cache: { ttl: 1000 }, replyFrom: { undici: { connections: 5 } }, requestTimeout: 1000 }
await app.register(coordinatorPlugin, options)

// Passing on what reply-from offers.
app.get('/through/:id', app.coordinator.lookupAndProxy({
  destinationFrom: req => req.params.id,
  rewriteRequestHeaders: (_request, headers) => ({ ...headers, 'x-own': '1' }),
  rewriteHeaders: headers => ({ ...headers, 'x-own': '1' }),
  onError: (reply, { statusCode, code, error }) => {
    yes<Is<typeof statusCode, number>>()
    yes<Is<typeof code, string>>()
    yes<Is<typeof error, Error>>()
    reply.code(statusCode).send({ code })
  }
}))

// proxyVia, with a target of its own.
app.get('/via/:id', proxyVia(async req => {
  const resolved = await registry.resolveDestination(req.params.id as string)
  return resolved
}))
app.get<{ Params: { id: string } }>('/via2/:id', proxyVia<{ Params: { id: string } }>(req => ({ memberId: 'pod-1', address: `http://${req.params.id}`, result: 'hit' }), {
  noPodStatus: 503,
  onUnreachable: target => { yes<Is<typeof target, ProxyTarget>>() }
}))
// @ts-expect-error a target has an address
proxyVia(() => ({ memberId: 'pod-1' }))
// @ts-expect-error and its result is a documented one
proxyVia(() => ({ memberId: 'pod-1', address: 'http://pod.test', result: 'fine' }))

// Results are a closed list.
const result: HelperResult = 'orphan_reassigned'
// @ts-expect-error
const noResult: HelperResult = 'ok'

// A helper called in a handler of the application.
const inner = app.coordinator.lookupAndProxy<{ Params: { id: string } }>({ destinationFrom: req => req.params.id })
app.post<{ Params: { id: string } }>('/inner/:id', { config: { coordinator: { raw: true } } }, function (request, reply: FastifyReply<{ Params: { id: string } }>) {
  return inner.call(this, request, reply)
})
// @ts-expect-error raw is a boolean
app.post('/inner2', { config: { coordinator: { raw: 'yes' } } }, async () => {})

export { noResult, result, wrong }
