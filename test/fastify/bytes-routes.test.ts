import assert from 'node:assert/strict'
import test from 'node:test'
import multipart from '@fastify/multipart'
import { setHttpScene } from '../support/http-scene.ts'
import { coordinatorPlugin } from '../../src/index.ts'
import type { AnyRoute } from '../../src/index.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'
import type { RawReply } from '../support/raw-http.ts'
import { storeUrl } from '../support/store.ts'

const json = { 'content-type': 'application/json' }

test('routes that are not ours: they keep the parsing of Fastify, its 400, its 413 and its 415 (G13)', async t => {
  const scene = await setHttpScene(t, { fastify: { bodyLimit: 100 } })
  await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  scene.app.post('/own', async request => ({ body: request.body, type: typeof request.body }))
  const ask = async (headers: Record<string, string>, body?: string): Promise<[number, unknown]> => {
    const reply = await scene.ask(toRequest('POST /own', headers, body))
    const answer = JSON.parse(reply.body.toString()) as { code?: string }
    return [reply.statusCode, answer.code ?? answer]
  }
  assert.deepEqual(await ask(json, '{"a":[1]}'), [200, { body: { a: [1] }, type: 'object' }])
  assert.deepEqual(await ask({ 'content-type': 'text/plain' }, 'ab'), [200, { body: 'ab', type: 'string' }])
  assert.deepEqual(await ask(json, '{"a":'), [400, 'FST_ERR_CTP_INVALID_JSON_BODY'])
  assert.deepEqual(await ask(json), [400, 'FST_ERR_CTP_EMPTY_JSON_BODY'])
  assert.deepEqual(await ask({ 'content-type': 'image/png' }, 'ab'), [415, 'FST_ERR_CTP_INVALID_MEDIA_TYPE'])
  assert.deepEqual(await ask(json, JSON.stringify('x'.repeat(100))), [413, 'FST_ERR_CTP_BODY_TOO_LARGE'])
})

test('routes that are not ours: the private content type, even when it is known, is 415 there (G13)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const seen: (string | undefined)[] = []
  // A preParsing hook of the route runs before ours: this one is told in the next, which an encapsulated hook after it can be.
  scene.app.post('/d/:id', {
    onRequest: async request => {
      const { headers } = request.raw
      let type = headers['content-type']
      Object.defineProperty(headers, 'content-type', {
        configurable: true,
        enumerable: true,
        get: () => type,
        set: value => {
          seen.push(value)
          type = value
        }
      })
    }
  }, scene.coordinator.lookupAndProxy({ destinationFrom: request => (request.params as { id: string }).id }) as never)
  scene.app.post('/own', async request => ({ body: String(request.body) }))

  await scene.ask(toRequest('POST /d/x', json, '{}'))
  const [privateType, restored] = seen
  assert.match(String(privateType), /^application\/x-coordinator-/, 'the private type was seen')
  assert.equal(restored, 'application/json')

  const reply = await scene.ask(toRequest('POST /own', { 'content-type': String(privateType) }, '{}'))
  assert.equal(reply.statusCode, 415)
  assert.equal((JSON.parse(reply.body.toString()) as { code: string }).code, 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
  const through = await scene.ask(toRequest('POST /d/x', { 'content-type': String(privateType) }, '{}'))
  assert.equal(through.statusCode, 200, 'on a route of ours it is a type as any other')
  assert.deepEqual(pod.requests.map(request => request.values('content-type')), [['application/json'], [privateType]])
})

test('routes that are not ours: a route without a body schema and a wrapped handler is not taken for ours', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const proxy = scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id })
  const kinds: string[] = []
  scene.app.post<AnyRoute>('/wrapped/:id', function (request, reply) {
    kinds.push(typeof request.body)
    return proxy.call(this, request, reply)
  })
  const reply = await scene.ask(toRequest('POST /wrapped/x', json, '{ "n": 1.0, "n": 2 }'))
  assert.equal(reply.statusCode, 200)
  assert.deepEqual(kinds, ['object'])
  assert.equal(pod.requests[0]?.body.toString(), '{"n":2}', 'written again, as documented')
  assert.deepEqual(pod.requests[0]?.values('content-length'), ['7'])
})

test('config.coordinator.raw: a helper that is called in a handler of the application gets the bytes that came (G13)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const proxy = scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id })
  const types: unknown[] = []
  scene.app.post<AnyRoute>('/wrapped/:id', { config: { coordinator: { raw: true } } }, function (request, reply) {
    types.push(request.headers['content-type'])
    return proxy.call(this, request, reply)
  })
  for (const [type, body] of [['application/json', '{ "n": 12345678901234567890, "n": 2 }'], ['image/png', '\x00\x01'], ['application/x-www-form-urlencoded', 'a=%20']] as const) {
    const reply = await scene.ask(toRequest('POST /wrapped/x', { 'content-type': type }, body))
    assert.equal(reply.statusCode, 200)
    assert.equal(pod.requests.at(-1)?.body.toString(), body)
    assert.deepEqual(pod.requests.at(-1)?.values('content-type'), [type])
    assert.equal(types.at(-1), type)
  }
  assert.deepEqual(scene.logs.filter(({ level }) => level >= 40), [])
})

test('config.coordinator.raw: false leaves parsing as it is', async t => {
  const scene = await setHttpScene(t)
  scene.app.post('/own', { config: { coordinator: { raw: false } } }, async request => ({ body: request.body }))
  const reply = await scene.ask(toRequest('POST /own', json, '{"a":1}'))
  assert.equal(reply.body.toString(), '{"body":{"a":1}}')
})

test('@fastify/multipart: the bytes pass on our routes, and the application\'s own uploads are parsed (G33)', async t => {
  for (const order of ['before', 'after']) {
    const scene = await setHttpScene(t, { plugin: false })
    if (order === 'before') await scene.app.register(multipart)
    await scene.app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix })
    if (order === 'after') await scene.app.register(multipart)
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
    scene.app.post('/own', async request => ({ size: (await (await request.file())?.toBuffer())?.length }))
    const body = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\nContent-Type: text/plain\r\n\r\nabcdef\r\n--b--\r\n'
    const type = 'multipart/form-data; boundary=b'

    const replies: RawReply[] = []
    replies.push(await scene.ask(toRequest('POST /d/x', { 'content-type': type }, body)))
    replies.push(await scene.ask(Buffer.concat([toRequest('POST /d/x', { 'content-type': type, 'transfer-encoding': 'chunked' }), toChunks([body])])))
    replies.push(await scene.ask(toRequest('POST /own', { 'content-type': type }, body)))

    assert.deepEqual(replies.map(({ statusCode }) => statusCode), [200, 200, 200], order)
    assert.deepEqual(pod.requests.map(request => request.body.toString()), [body, body])
    assert.deepEqual(pod.requests.map(request => request.values('content-type')), [[type], [type]])
    assert.equal(replies[2]?.body.toString(), '{"size":6}')
  }
})

test('hooks of the application: those before and after parsing see the true content type, on the application and on the route', async t => {
  const seen: string[] = []
  const scene = await setHttpScene(t, { plugin: false })
  await addHooks(scene, 'early', seen)
  await scene.app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix })
  await addHooks(scene, 'late', seen)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', {
    preParsing: async (request, _reply, payload) => {
      seen.push(`route preParsing ${request.headers['content-type']}`)
      return payload
    },
    preValidation: [async request => { seen.push(`route preValidation ${request.headers['content-type']}`) }],
    preHandler: async request => { seen.push(`route preHandler ${request.headers['content-type']}`) }
  }, scene.coordinator.lookupAndProxy({
    destinationFrom: request => {
      seen.push(`destinationFrom ${request.headers['content-type']}`)
      return (request.params as { id: string }).id
    }
  }) as never)
  for (const type of ['application/json', 'image/png', undefined]) {
    seen.length = 0
    const reply = await scene.ask(toRequest('POST /d/x', type === undefined ? {} : { 'content-type': type }, 'abc'))
    assert.equal(reply.statusCode, 200)
    assert.equal(seen.length, 8)
    assert.deepEqual(seen.filter(line => !line.endsWith(` ${type}`)), [])
    assert.deepEqual(pod.requests.at(-1)?.body.toString(), 'abc')
  }
})

async function addHooks ({ app }: HttpScene, name: string, seen: string[]): Promise<void> {
  app.addHook('preParsing', async (request, _reply, payload) => {
    seen.push(`${name} preParsing ${request.headers['content-type']}`)
    return payload
  })
  app.addHook('preValidation', async request => { seen.push(`${name} preValidation ${request.headers['content-type']}`) })
}

test('request.mediaType: reading it in a hook costs no byte, and it is the true one for the callbacks', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const seen: unknown[] = []
  const idFrom = (request: { mediaType?: string | undefined }): string => {
    seen.push(request.mediaType)
    return 'x'
  }
  scene.app.post('/quiet', scene.coordinator.lookupAndProxy({ destinationFrom: idFrom }))
  scene.app.post('/read', { onRequest: async request => { seen.push(request.mediaType) } }, scene.coordinator.lookupAndProxy({ destinationFrom: idFrom }))
  for (const path of ['/quiet', '/read']) {
    for (const type of ['application/json', 'image/png']) {
      const reply = await scene.ask(toRequest(`POST ${path}`, { 'content-type': type }, '{ "n": 1.0 }'))
      assert.equal(reply.statusCode, 200, `${path} ${type}`)
      assert.equal(pod.requests.at(-1)?.body.toString(), '{ "n": 1.0 }')
    }
  }
  assert.deepEqual(seen, ['application/json', 'image/png', 'application/json', 'application/json', 'image/png', 'image/png'])
})
