import { Session } from 'node:inspector/promises'
import type { Profiler } from 'node:inspector'
import replyFrom from '@fastify/reply-from'
import fastify from 'fastify'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { Redis } from 'iovalkey'
import coordinatorPlugin, { Registry } from '@platformatic/coordinator'
import { answerQuestions } from '../processes/answer.ts'
import { proxyWith } from '../processes/duties.ts'
import { sendByRequest, sendDirectly } from './direct.ts'
import { forward } from './forwarder.ts'
import { createSender } from './sender.ts'
import type { Way } from './ways.ts'
import { fixedReply, listenAndAnswer, listenAndForward } from './without-fastify.ts'

export interface OpenWay {
  readonly way: Way
  readonly url: string
  readonly keyPrefix: string
  readonly podAddress: string
}

let session: Session | undefined

/** A process with one way to answer, so that none runs on code that another has made slower. */
answerQuestions({
  async open (details: OpenWay) {
    if (details.way === 'node-reply') return await listenAndAnswer()
    if (details.way === 'node-http') return await listenAndForward(details.podAddress)
    const app = fastify()
    app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
    app.route({ method: ['GET', 'POST'], url: '/s/:id', handler: await createHandler(app, details) })
    await app.listen({ host: '127.0.0.1', port: 0 })
    return Number(new URL(app.listeningOrigin).port)
  },
  /** Begins a profile, as --cpu-prof would, but of the load alone. */
  async startProfile ({ intervalUs }: { intervalUs: number }) {
    session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: intervalUs })
    await session.post('Profiler.start')
  },
  async stopProfile (): Promise<Profiler.Profile> {
    if (session === undefined) throw new Error('No profile was begun')
    return (await session.post('Profiler.stop')).profile
  }
})

async function createHandler (app: FastifyInstance, { way, url, keyPrefix, podAddress }: OpenWay): Promise<RouteHandlerMethod> {
  switch (way) {
    case 'fastify-reply': return (request, reply) => { answer(request.body, () => reply.header('content-type', 'application/json').send(fixedReply)) }
    case 'direct': return sendDirectly(createSender(), podAddress)
    case 'request': return sendByRequest(createSender(), podAddress)
    case 'bare':
      await app.register(replyFrom, { disableRequestLogging: true, destroyAgent: true })
      return proxyWith(podAddress, {})
    case 'ours':
      await app.register(coordinatorPlugin, { redis: new Redis(url), keyPrefix, requestTimeout: 10_000 })
      return lookupAndProxy(app)
    case 'ours-built': {
      const built = await import(new URL('../../dist/index.js', import.meta.url).href) as { default: typeof coordinatorPlugin }
      await app.register(built.default, { redis: new Redis(url), keyPrefix, requestTimeout: 10_000 })
      return lookupAndProxy(app)
    }
    case 'forward-raw': case 'forward-bytes': case 'forward-stream': {
      const registry = new Registry({ redis: new Redis(url), keyPrefix })
      return forward(createSender(), registry, way.slice('forward-'.length) as 'raw' | 'bytes' | 'stream')
    }
    case 'node-reply': case 'node-http': throw new Error(`${way} has no Fastify`)
    default: return way satisfies never
  }
}

function lookupAndProxy (app: FastifyInstance): RouteHandlerMethod {
  return app.coordinator.lookupAndProxy({ destinationFrom: request => (request.params as { id: string }).id }) as RouteHandlerMethod
}

/** Reads what was sent, where something was. */
function answer (body: unknown, send: () => void): void {
  if (body === undefined || body === null) send()
  else (body as NodeJS.ReadableStream).resume().once('end', send)
}
