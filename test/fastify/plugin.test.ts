import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import test from 'node:test'
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import defaultExport, * as library from '../../src/index.ts'
import { coordinatorPlugin, Registry } from '../../src/index.ts'
import type { Coordinator } from '../../src/index.ts'
import { atEnd } from '../support/at-end.ts'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { setScene, storeUrl } from '../support/store.ts'

interface Dispatcher {
  request (options: { path: string }, callback: unknown): void
  destroy (): Promise<void>
}

const invalidOption = { code: 'PLT_COORDINATOR_INVALID_OPTION' }

test('plugin: it is the default export, and coordinatorPlugin', () => {
  assert.equal(defaultExport, coordinatorPlugin)
  for (const name of ['lookupAndProxy', 'pickAndRegister', 'lookupAndDeregister', 'lookupLockAndProxy', 'proxyVia', 'exactBodies'] as const) assert.equal(typeof library[name], 'function')
})

test('plugin: app.coordinator holds the registry and the four helpers', async t => {
  const { coordinator } = await setHttpScene(t)
  assert.ok(coordinator.registry instanceof Registry)
  assert.deepEqual(Object.keys(coordinator).sort(), ['lookupAndDeregister', 'lookupAndProxy', 'lookupLockAndProxy', 'pickAndRegister', 'registry'])
})

test('plugin: registered twice under two names, each routes in its own store prefix, and both close (G08)', async t => {
  const scene = await setHttpScene(t)
  const other = setScene(t)
  await scene.app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: other.keyPrefix, decorateAs: 'sessions' })
  const { sessions } = scene.app as unknown as { sessions: Coordinator }
  const first = await scene.pod('pod-1', { destinationIds: ['x'] })
  const second = await startPod(t)
  await (await other.liveMember('pod-1', { address: second.address })).addToDestination('x')
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  scene.app.post('/s/:id', sessions.lookupAndProxy({ destinationFrom: request => request.params.id }))

  for (const path of ['/d/x', '/s/x']) assert.equal((await scene.ask(toRequest(`POST ${path}`, { 'content-type': 'application/json' }, '{ "n": 1.0 }'))).statusCode, 200)

  assert.deepEqual([first.requests.map(({ url }) => url), second.requests.map(({ url }) => url)], [['/d/x'], ['/s/x']])
  assert.equal(second.requests[0]?.body.toString(), '{ "n": 1.0 }')
  await scene.app.close()
  for (const { registry } of [scene.coordinator, sessions]) await assert.rejects(registry.hasBinding('x'), { code: 'PLT_COORDINATOR_CLOSED' })
})

test('plugin: registered twice under one name is refused', async t => {
  const scene = await setHttpScene(t)
  await assert.rejects(async () => { await scene.app.register(coordinatorPlugin, { redis: storeUrl }) }, invalidOption)
})

test('plugin: its own registry is closed with the application', async t => {
  const scene = await setHttpScene(t)
  await scene.coordinator.registry.hasBinding('x')
  await scene.app.close()
  await assert.rejects(scene.coordinator.registry.hasBinding('x'), { code: 'PLT_COORDINATOR_CLOSED' })
})

test('plugin: a registry that is brought is used, and stays open when the application closes (G08)', async t => {
  const registry = setScene(t).registry()
  for (const each of [1, 2]) {
    const scene = await setHttpScene(t, { plugin: { registry } })
    assert.equal(scene.coordinator.registry, registry, String(each))
    await scene.app.close()
    assert.equal(await registry.hasBinding('x'), false)
  }
})

test('plugin: a registry that is brought is used without redis', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  const app = Fastify()
  atEnd(t, () => app.close())
  await app.register(coordinatorPlugin, { registry })
  assert.equal(app.coordinator.registry, registry)
})

test('plugin: a client that is brought stays open (G08)', async t => {
  const scene = setScene(t)
  const app = Fastify()
  await app.register(coordinatorPlugin, { redis: scene.raw, keyPrefix: scene.keyPrefix })
  assert.equal(await app.coordinator.registry.hasBinding('x'), false)
  await app.close()
  assert.equal(await scene.raw.ping(), 'PONG')
})

test('plugin: 30 applications in turn on one client leave no listener on it (G08)', async t => {
  const scene = setScene(t)
  await scene.raw.ping()
  const count = (): number => scene.raw.eventNames().reduce((sum, name) => sum + scene.raw.listenerCount(name), 0)
  const before = count()
  for (let each = 0; each < 30; each++) {
    const app = Fastify()
    await app.register(coordinatorPlugin, { redis: scene.raw, keyPrefix: scene.keyPrefix })
    await app.coordinator.registry.hasBinding('x')
    await app.close()
  }
  assert.equal(count(), before)
})

test('plugin: the options of the registry reach it', async t => {
  const scene = await setHttpScene(t, { plugin: { strategy: { pick: candidates => candidates.find(({ memberId }) => memberId === 'pod-2') ?? null } } })
  await scene.pod('pod-1')
  const pod = await scene.pod('pod-2')
  await scene.pod('pod-3')
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: () => 'new' }))
  await scene.ask(toRequest('POST /d'))
  assert.equal(pod.requests.length, 1)
})

for (const [what, set] of [
  ['before, with registerReplyFrom true', { registerReplyFrom: true }],
  ['before, with registerReplyFrom false', { registerReplyFrom: false }]
] as const) {
  test(`plugin: @fastify/reply-from registered ${what} is left as it is, and used`, async t => {
    const scene = await setHttpScene(t, { plugin: false })
    await scene.app.register(replyFrom)
    await scene.app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix, ...set })
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
    scene.app.get('/own', (_request, reply) => reply.from(`${pod.address}/own`))
    const reply = await scene.ask(toRequest('POST /d/x?a=%2F', { 'content-type': 'application/json' }, '{ "n": 1.0 }'))
    assert.equal(reply.statusCode, 200)
    assert.equal((await scene.ask(toRequest('GET /own'))).statusCode, 200)
    assert.deepEqual(pod.requests.map(({ url, body }) => [url, body.toString()]), [['/d/x?a=%2F', '{ "n": 1.0 }'], ['/own', '']])
  })
}

test('plugin: registerReplyFrom false without @fastify/reply-from is refused', async t => {
  await assert.rejects(setHttpScene(t, { plugin: { registerReplyFrom: false } }), invalidOption)
})

test('plugin: the application\'s own reply.from works on the sender of the plugin, with its body and errors', async t => {
  const scene = await setHttpScene(t)
  const pod = await startPod(t)
  scene.app.post('/own', (_request, reply) => reply.from(`${pod.address}/else?b=1`))
  scene.app.get('/dead', (_request, reply) => reply.from('http://127.0.0.1:1/'))
  const reply = await scene.ask(toRequest('POST /own?a=1', { 'content-type': 'application/json' }, '{ "n": 1.0 }'))
  assert.equal(reply.statusCode, 200)
  assert.deepEqual(pod.requests.map(({ body }) => body.toString()), ['{"n":1}'], 'parsed and written by Fastify and reply-from, as ever')
  assert.equal((await scene.ask(toRequest('GET /dead'))).statusCode, 500)
})

test('plugin: replyFrom reaches @fastify/reply-from: options of an Agent', async t => {
  const scene = await setHttpScene(t, { plugin: { replyFrom: { undici: { connections: 1 } } } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  await Promise.all(Array.from({ length: 10 }, () => scene.ask(toRequest('GET /d/x'))))
  assert.deepEqual([pod.requests.length, pod.connectionCount], [10, 1])
})

test('plugin: replyFrom reaches @fastify/reply-from: a dispatcher of the application is used, and left to it', async t => {
  const { Agent } = createRequire(createRequire(import.meta.url).resolve('@fastify/reply-from'))('undici') as { Agent: new () => Dispatcher }
  const agent = new Agent()
  const calls: string[] = []
  const dispatcher: Dispatcher = {
    request (options, callback) {
      calls.push(options.path)
      agent.request(options, callback)
    },
    async destroy () {
      calls.push('destroy')
      await agent.destroy()
    }
  }
  const scene = await setHttpScene(t, { plugin: { replyFrom: { undici: dispatcher as never } } })
  await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x?a=%2F'))).statusCode, 200)
  await scene.app.close()
  assert.deepEqual(calls, ['/d/x?a=%2F'])
  await agent.destroy()
})

test('plugin: the http client of @fastify/reply-from can be chosen, and the helpers still serve', async t => {
  const scene = await setHttpScene(t, { plugin: { replyFrom: { http: {} } } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  for (const body of ['{ "n": 1.0 }', 'x'.repeat(100_000)]) {
    assert.equal((await scene.ask(toRequest('POST /d/x', { 'content-type': 'application/json' }, body))).statusCode, 200)
    assert.equal(pod.requests.at(-1)?.body.toString(), body)
  }
})

test('plugin: in a child context it is visible where Fastify says: there and below', async t => {
  const scene = setScene(t)
  const app = Fastify()
  atEnd(t, () => app.close())
  await app.register(async (child: FastifyInstance) => {
    await child.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix })
    assert.ok(child.hasDecorator('coordinator'))
  })
  await app.ready()
  assert.equal(app.hasDecorator('coordinator'), false)
})

for (const [what, options] of [
  ['decorateAs empty', { decorateAs: '' }],
  ['decorateAs a number', { decorateAs: 1 }],
  ['decorateAs taken by Fastify', { decorateAs: 'register' }],
  ['registerReplyFrom a text', { registerReplyFrom: 'false' }],
  ['registry an object', { registry: {} }],
  ['registry null', { registry: null }],
  ['requestTimeout 0', { requestTimeout: 0 }],
  ['requestTimeout a text', { requestTimeout: '500' }],
  ['requestTimeout past what a timer holds', { requestTimeout: 2 ** 31 }],
  ['idleTimeout NaN', { idleTimeout: Number.NaN }],
  ['replyFrom.base', { replyFrom: { base: 'http://pod.test' } }],
  ['replyFrom a text', { replyFrom: 'x' }],
  ['replyFrom null', { replyFrom: null }],
  ['redis absent', { redis: undefined }],
  ['strategy unknown', { strategy: 'fastest' }]
] as const) {
  test(`plugin: refused with a coded error: ${what}`, async t => {
    await assert.rejects(setHttpScene(t, { plugin: options as never }), (error: { code?: string }) => {
      assert.equal(error.code, 'PLT_COORDINATOR_INVALID_OPTION', String(error))
      return true
    })
  })
}

test('plugin: what it opened is closed where the application could not start', async t => {
  const scene = setScene(t)
  const app = Fastify()
  await app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix })
  app.register(async () => { throw new Error('Thrown by the test') })
  await assert.rejects(async () => { await app.ready() }, /Thrown by the test/)
  await app.close()
  await assert.rejects(app.coordinator.registry.hasBinding('x'), { code: 'PLT_COORDINATOR_CLOSED' })
})
