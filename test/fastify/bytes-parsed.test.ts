import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import { createGunzip, gzipSync } from 'node:zlib'
import { setHttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'

const json = { 'content-type': 'application/json' }
const original = '{ "tenant": "x",\r\n "n": 12345678901234567890, "n": 1e2 }'

for (const way of ['parseBody', 'a body schema']) {
  test(`${way}: destinationFrom and lockFrom get a parsed body, and the pod the bytes that came (G13)`, async t => {
    const scene = await setHttpScene(t)
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    await pod.member.registerLock('x', 'any')
    const seen: unknown[] = []
    const idFrom = (request: { body: unknown }): string => {
      seen.push(structuredClone(request.body))
      return (request.body as { tenant: string }).tenant
    }
    const parseBody = way === 'parseBody' ? true : undefined
    const route = way === 'parseBody' ? {} : { schema: { body: { type: 'object', required: ['tenant'], properties: { tenant: { type: 'string' }, added: { default: 1 } } } } }
    scene.app.post('/d', route, scene.coordinator.lookupAndProxy({ parseBody, destinationFrom: idFrom }))
    scene.app.post('/l', route, scene.coordinator.lookupLockAndProxy({ parseBody, lockFrom: idFrom }))
    scene.app.post('/gone', route, scene.coordinator.lookupAndDeregister({ parseBody, destinationFrom: idFrom, expectedStatus: 299 }))

    for (const path of ['/d', '/l', '/gone']) {
      const known = await scene.ask(toRequest(`POST ${path}`, json, original))
      const chunked = await scene.ask(Buffer.concat([toRequest(`POST ${path}`, { ...json, 'transfer-encoding': 'chunked' }), toChunks([original.slice(0, 7), original.slice(7)])]))
      assert.deepEqual([known.statusCode, chunked.statusCode], [200, 200], path)
    }
    assert.deepEqual(pod.requests.map(({ body }) => body.toString()), Array(6).fill(original))
    assert.deepEqual(pod.requests.map(request => request.values('content-type')), Array(6).fill(['application/json']))
    assert.deepEqual(seen, Array(6).fill({ tenant: 'x', n: 100, ...(way === 'parseBody' ? {} : { added: 1 }) }))
    assert.deepEqual(scene.logs.filter(({ level }) => level >= 40), [])
  })
}

test('a body schema: what does not match it is 400, and no pod is asked', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const schema = { body: { type: 'object', required: ['tenant'], properties: { tenant: { type: 'string' } } } }
  scene.app.post('/d', { schema }, scene.coordinator.lookupAndProxy({ destinationFrom: request => (request.body as { tenant: string }).tenant, onResult: scene.onResult }))
  for (const [body, code] of [['{"other":1}', 'FST_ERR_VALIDATION'], ['{', 'FST_ERR_CTP_INVALID_JSON_BODY']] as const) {
    const reply = await scene.ask(toRequest('POST /d', json, body))
    assert.equal(reply.statusCode, 400)
    assert.equal((JSON.parse(reply.body.toString()) as { code: string }).code, code)
  }
  assert.equal((await scene.ask(toRequest('POST /d', json, '{"tenant":"x"}'))).statusCode, 200)
  assert.equal(pod.requests.length, 1)
  assert.deepEqual(scene.results, ['hit'], 'what Fastify refused did not reach the helper')
})

test('parseBody false: a route with a body schema is not parsed', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', { schema: { querystring: {} } }, scene.coordinator.lookupAndProxy({ parseBody: false, destinationFrom: request => request.params.id }))
  const reply = await scene.ask(toRequest('POST /d/x', json, '{"a":'))
  assert.equal(reply.statusCode, 200)
  assert.equal(pod.requests[0]?.body.toString(), '{"a":')
})

test('parseBody: a type no parser of the application reads reaches the pod all the same', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom: request => request.params.id }))
  for (const type of ['image/png', 'application/x-ndjson', undefined]) {
    const bytes = randomBytes(1000)
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
    for (const body of [bytes, undefined]) {
      const reply = await scene.ask(toRequest('PUT /d/x', headers, body))
      assert.equal(reply.statusCode, 200, `${type} ${body?.length}`)
      assert.deepEqual(pod.requests.at(-1)?.body, body ?? Buffer.alloc(0))
      assert.deepEqual(pod.requests.at(-1)?.values('content-type'), type === undefined ? [] : [type])
    }
  }
})

test('parseBody: parsers of the application are used, strings and buffers among them, and the bytes stay exact', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async (_request: unknown, body: string) => Object.fromEntries(new URLSearchParams(body)))
  scene.app.post('/d', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom: request => (request.body as { tenant: string }).tenant }))
  for (const [type, body] of [['application/x-www-form-urlencoded', 'b=%20+&tenant=x&b=2'], ['Application/JSON ; charset=utf-8', original]] as const) {
    const reply = await scene.ask(toRequest('POST /d', { 'content-type': type }, body))
    assert.equal(reply.statusCode, 200, type)
    assert.equal(pod.requests.at(-1)?.body.toString(), body)
    assert.deepEqual(pod.requests.at(-1)?.values('content-type'), [type])
  }
})

test('parseBody: a DELETE of type JSON without a body passes, and its body is undefined for the callbacks (G13)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const seen: unknown[] = []
  const destinationFrom = (request: { body: unknown }): string => {
    seen.push(request.body)
    return 'x'
  }
  scene.app.delete('/d', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom }))
  for (const headers of [json, { ...json, 'content-length': '0' }]) assert.equal((await scene.ask(toRequest('DELETE /d', headers))).statusCode, 200)
  assert.deepEqual(seen, [undefined, undefined])
  assert.deepEqual(pod.requests.map(request => [request.values('content-type'), request.body.length]), [[['application/json'], 0], [['application/json'], 0]])
})

test('parseBody: what a preParsing hook of the application unpacked is parsed, as without us', async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.addHook('preParsing', async (_request, _reply, payload) => {
    const unpacked = Object.assign(createGunzip(), { receivedEncodedLength: 0 })
    payload.on('data', (chunk: Buffer) => { unpacked.receivedEncodedLength += chunk.length })
    return payload.pipe(unpacked)
  })
  scene.app.post('/d', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom: request => (request.body as { tenant: string }).tenant }))
  const reply = await scene.ask(toRequest('POST /d', { ...json, 'content-encoding': 'gzip' }, gzipSync('{"tenant":"x"}')))
  assert.equal(reply.statusCode, 200)
})

test('parseBody: a type whose parser is given by a pattern is not parsed, which Fastify does not tell of, and passes exactly', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.addContentTypeParser(/^application\/.*bin$/, { parseAs: 'buffer' }, async () => ({}))
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom: request => request.params.id }))
  const reply = await scene.ask(toRequest('POST /d/x', { 'content-type': 'application/my.bin' }, 'x\x00\x01'))
  assert.equal(reply.statusCode, 200)
  assert.equal(pod.requests[0]?.body.toString(), 'x\x00\x01')
  assert.deepEqual(pod.requests[0]?.values('content-type'), ['application/my.bin'])
})

test('parseBody: a body over the limit of Fastify is 413, of known length and in chunks (G46)', async t => {
  const scene = await setHttpScene(t, { fastify: { bodyLimit: 50 } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ parseBody: true, destinationFrom: request => request.params.id }))
  const large = JSON.stringify('x'.repeat(50))
  const known = await scene.ask(toRequest('POST /d/x', json, large))
  const chunked = await scene.ask(Buffer.concat([toRequest('POST /d/x', { ...json, 'transfer-encoding': 'chunked' }), toChunks([large.slice(0, 10), large.slice(10)])]))
  assert.deepEqual([known.statusCode, chunked.statusCode], [413, 413])
  assert.equal((await scene.ask(toRequest('POST /d/x', json, JSON.stringify('x'.repeat(48))))).statusCode, 200, '50 bytes are within it')
  assert.equal(pod.requests.length, 1)
})

for (const limit of [100, 70_000]) {
  test(`bodyLimit of the route: ${limit} bytes pass, one more is 413, of known length and in chunks (G46)`, async t => {
    const scene = await setHttpScene(t)
    const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
    scene.app.post('/d/:id', { bodyLimit: limit }, scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
    const bytes = randomBytes(limit + 1)
    const chunked = (body: Buffer): Buffer => Buffer.concat([toRequest('POST /d/x', { 'transfer-encoding': 'chunked' }), toChunks([body.subarray(0, 50), body.subarray(50)])])

    for (const request of [toRequest('POST /d/x', {}, bytes.subarray(1)), chunked(bytes.subarray(1))]) {
      assert.equal((await scene.ask(request)).statusCode, 200)
      assert.deepEqual(pod.requests.at(-1)?.body, bytes.subarray(1))
    }
    for (const request of [toRequest('POST /d/x', {}, bytes), chunked(bytes)]) {
      const reply = await scene.ask(request)
      assert.equal(reply.statusCode, 413)
      const { statusCode, code } = JSON.parse(reply.body.toString()) as { statusCode: number, code: string }
      assert.deepEqual([statusCode, code], [413, 'PLT_COORDINATOR_BODY_TOO_LARGE'])
    }
    assert.deepEqual(scene.results, ['hit', 'hit', 'bad_request', 'bad_request'])
    assert.deepEqual(pod.requests.slice(2).filter(({ isWhole }) => isWhole), [], 'no pod got a whole request that is too large')
  })
}

test('bodyLimit of the application: what is not parsed is not limited by it', async t => {
  const scene = await setHttpScene(t, { fastify: { bodyLimit: 10 } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  for (const bytes of [randomBytes(100), randomBytes(100_000)]) {
    assert.equal((await scene.ask(toRequest('POST /d/x', json, bytes))).statusCode, 200)
    assert.deepEqual(pod.requests.at(-1)?.body, bytes)
  }
})
