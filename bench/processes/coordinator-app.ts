import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import fastify from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { Redis } from 'iovalkey'
import coordinatorPlugin, { proxyVia } from '@platformatic/coordinator'
import type { AnyRoute, HelperHandler } from '@platformatic/coordinator'
import { answerQuestions } from './answer.ts'
import { createSender, fixedDuties, proxyWith } from './duties.ts'
import type { Duties } from './duties.ts'

export interface OpenApp {
  readonly url: string
  readonly keyPrefix: string
  /** Where the pod listens, which all members name as theirs. */
  readonly podAddress: string
}

const requestTimeout = 10_000
const app = fastify()
let client: Redis | undefined

/**
 * The application of the HTTP rows. Each way to proxy has a scope of its own, so that none runs under the hooks, the parsers or the
 * reply-from of another. All paths are of one length.
 */
answerQuestions({
  async open ({ url, keyPrefix, podAddress }: OpenApp) {
    client = new Redis(url)
    await app.register(async scope => addHelpers(scope, keyPrefix, podAddress))
    await app.register(async scope => {
      passBodies(scope)
      await scope.register(replyFrom, { disableRequestLogging: true, destroyAgent: true })
      addRoute(scope, 'b', proxyWith(podAddress, {}))
      const single: readonly [string, Duties][] = [
        ['2', { timeout: true }], ['3', { requestHeaders: true }], ['4', { replyHeaders: true }], ['5', { failures: true }], ['6', { heldBody: true }]
      ]
      for (const [letter, duties] of single) addRoute(scope, letter, proxyWith(podAddress, duties))
      addRoute(scope, 'g', async (request: FastifyRequest, reply: FastifyReply) => {
        await client?.get(`${keyPrefix}:plain`)
        return reply.from(podAddress + request.url)
      })
    })
    await app.register(async scope => {
      passBodies(scope)
      await scope.register(replyFrom, { disableRequestLogging: true, destroyAgent: true, undici: createSender() as never })
      addRoute(scope, 'f', proxyWith(podAddress, fixedDuties))
      addRoute(scope, '1', proxyWith(podAddress, { signal: 'emitter' }))
      addRoute(scope, '7', proxyWith(podAddress, { signal: 'abort' }))
    })
    await app.register(httpProxy, { upstream: podAddress, prefix: '/p', disableRequestLogging: true, destroyAgent: true } as never)
    await app.listen({ host: '127.0.0.1', port: 0 })
    return Number(new URL(app.listeningOrigin).port)
  }
}, async () => {
  await app.close()
  await client?.quit()
})

async function addHelpers (scope: FastifyInstance, keyPrefix: string, podAddress: string): Promise<void> {
  const redis = client as Redis
  await scope.register(coordinatorPlugin, { redis, keyPrefix, requestTimeout })
  await scope.register(coordinatorPlugin, { redis, keyPrefix, requestTimeout, cache: false, decorateAs: 'uncached' })
  const { uncached } = scope as unknown as { uncached: FastifyInstance['coordinator'] }
  addRoute(scope, 'h', scope.coordinator.lookupAndProxy({ destinationFrom: request => request.params['id'] }))
  addRoute(scope, 'u', uncached.lookupAndProxy({ destinationFrom: request => request.params['id'] }))
  addRoute(scope, 'v', proxyVia(() => ({ memberId: 'pod-0', address: podAddress }), { requestTimeout }))
  addRoute(scope, 'c', scope.coordinator.pickAndRegister({ registerIdFrom: body => body.id }))
}

function addRoute (scope: FastifyInstance, letter: string, handler: RouteHandlerMethod | HelperHandler<AnyRoute>): void {
  scope.route({ method: ['GET', 'POST'], url: `/${letter}/:id`, handler: handler as RouteHandlerMethod })
}

/** Bodies go through reply-from as streams, as they do in http-proxy. */
function passBodies (scope: FastifyInstance): void {
  scope.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
}
