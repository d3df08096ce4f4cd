import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import test from 'node:test'
import type { FastifyInstance } from 'fastify'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress } from '../support/refusals.ts'

test('bodies: request.body is still there when a request goes to a second pod, and in onResult', async t => {
  const scene = await setHttpScene(t, { plugin: { strategy: { pick: candidates => candidates[0] ?? null } } })
  await scene.register('a-dead', deadAddress, ['x'])
  const pod = await scene.pod('b-lives', { destinationIds: ['x'] })
  const seen: unknown[] = []
  scene.app.post<{ Body: { id: string } }>('/d', scene.coordinator.lookupAndProxy<{ Body: { id: string } }>({
    parseBody: true,
    destinationFrom: ({ body }) => {
      seen.push(['destinationFrom', body])
      return body.id
    },
    onResult: (result, { body }) => { seen.push([result, body]) }
  }))
  const text = '{ "id": "x", "n": 1.0 }'
  const reply = await scene.ask(toRequest('POST /d', { 'content-type': 'application/json' }, text))
  assert.equal(reply.statusCode, 200)
  const body = { id: 'x', n: 1 }
  assert.deepEqual(seen, [['destinationFrom', body], ['destinationFrom', body], ['hit', body]])
  assert.deepEqual(pod.requests.map(({ body }) => body.toString()), [text])
})

for (const hasParser of [true, false]) {
  const what = hasParser ? 'with a parser of its own for all types' : 'without any parser'

  test(`bodies: in a scope ${what} no private type shows, at the pod or to the client`, async t => {
    const scene = await setHttpScene(t)
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    const seen: unknown[] = []
    await scene.app.register(async (scope: FastifyInstance) => {
      scope.removeAllContentTypeParsers()
      if (hasParser) scope.addContentTypeParser('*', (_request, payload, done) => { done(null, payload) })
      scope.addHook('preHandler', async request => { seen.push(request.headers['content-type']) })
      scope.setErrorHandler<Error & { statusCode: number }>(async (error, request, reply) => {
        seen.push(request.headers['content-type'])
        return await reply.code(error.statusCode).send(error.message)
      })
      scope.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
    })
    for (const type of ['application/json', 'text/plain; charset=utf-8', 'application/vnd.x+json', undefined]) {
      const reply = await scene.ask(toRequest('POST /d/x', type === undefined ? {} : { 'content-type': type }, '{ "n": 1.0 }'))
      const texts = [reply.body.toString(), ...reply.rawHeaders, ...pod.requests.flatMap(({ rawHeaders }) => rawHeaders), ...seen.map(String), ...scene.logs.map(line => JSON.stringify(line))]
      assert.doesNotMatch(texts.join('\n'), /x-coordinator/, String(type))
      assert.equal(seen.at(-1), type)
      // Without a parser it is Fastify that refuses, as it would on any route of that scope.
      assert.equal(reply.statusCode, hasParser ? 200 : 415, `${type}: ${reply.body.toString()}`)
      if (!hasParser) continue
      const request = pod.requests.at(-1)
      assert.deepEqual([request?.values('content-type'), request?.body.toString()], [type === undefined ? [] : [type], '{ "n": 1.0 }'])
    }
    assert.equal(pod.requests.length, hasParser ? 4 : 0)
  })
}

test('x-forwarded-for: a client that lists it in Connection does not have the chain dropped, with trustProxy', async t => {
  for (const connection of ['x-forwarded-for', 'X-Forwarded-For, x-forwarded-host, x-forwarded-proto, keep-alive']) {
    const scene = await setHttpScene(t, { fastify: { trustProxy: true } })
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
    const forwarded = { 'x-forwarded-for': '1.2.3.4, 5.6.7.8', 'x-forwarded-host': 'front.test', 'x-forwarded-proto': 'https' }
    assert.equal((await scene.ask(toRequest('GET /d/x', { connection, ...forwarded }))).statusCode, 200)
    const read = (name: string): string[] | undefined => pod.requests[0]?.values(`x-forwarded-${name}`)
    assert.deepEqual([read('for'), read('host'), read('proto')], [['1.2.3.4, 5.6.7.8, 127.0.0.1'], ['front.test'], ['https']], connection)
  }
})

test('bodies: a hook that puts a stream of texts in the place of the body: they reach the pod, and what is no body is refused', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  await scene.app.register(async (scope: FastifyInstance) => {
    scope.addHook('preParsing', async request => {
      return Readable.from(request.headers['x-odd'] === undefined ? ['te', 'xt'] : [{ odd: true }, { odd: true }]) as never
    })
    scope.post('/d', scene.coordinator.lookupAndProxy({ destinationFrom: () => 'x' }))
  })

  const reply = await scene.ask(toRequest('POST /d', { 'content-type': 'text/plain' }, 'TEXT'))
  const odd = await scene.ask(toRequest('POST /d', { 'content-type': 'text/plain', 'x-odd': '1' }, 'TEXT'))

  assert.equal(reply.statusCode, 200)
  assert.deepEqual(pod.requests.map(({ body }) => body.toString()), ['text'])
  assert.equal(odd.statusCode, 500)
})
