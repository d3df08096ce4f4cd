import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { bodies, toHeaders } from '../support/bodies.ts'
import type { Pod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

async function setProxy (t: TestContext): Promise<{ scene: HttpScene, pod: Pod }> {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
  return { scene, pod }
}

for (const { what, type, encoding, bytes } of bodies) {
  test(`request bytes: ${what} reaches the pod as it came, of known length and in chunks, by every method that has a body (G13)`, async t => {
    const { scene, pod } = await setProxy(t)
    const client = await scene.client()
    const headers = toHeaders({ type, ...(encoding === undefined ? {} : { encoding }) })
    const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
    for (const method of methods) {
      const known = await client.ask(toRequest(`${method} /d/x`, headers, bytes))
      const chunked = await client.ask(Buffer.concat([
        toRequest(`${method} /d/x`, { ...headers, 'transfer-encoding': 'chunked' }),
        toChunks([bytes.subarray(0, 1), bytes.subarray(1)].filter(chunk => chunk.length > 0))
      ]))
      assert.deepEqual([known.statusCode, known.body.toString(), chunked.statusCode, chunked.body.toString()], [200, 'ok', 200, 'ok'], method)
    }
    assert.deepEqual(pod.requests.map(({ method }) => method), methods.flatMap(method => [method, method]))
    for (const [at, request] of pod.requests.entries()) {
      assert.deepEqual(request.body, bytes)
      assert.equal(request.isWhole, true)
      assert.deepEqual(request.values('content-type'), type === undefined ? [] : [type])
      assert.deepEqual(request.values('content-encoding'), encoding === undefined ? [] : [encoding])
      // What came in chunks and was there as a whole when it was sent may get its length.
      const framing = [...request.values('content-length'), ...request.values('transfer-encoding')]
      assert.ok(framing.length === 1 && (framing[0] === String(bytes.length) || (at % 2 === 1 && framing[0] === 'chunked')), String(framing))
    }
    assert.deepEqual(scene.results, pod.requests.map(() => 'hit'))
  })

  test(`reply bytes: ${what} reaches the client as it came, of known length and in chunks (G13)`, async t => {
    const { scene, pod } = await setProxy(t)
    const headers = toHeaders({ type, ...(encoding === undefined ? {} : { encoding }) })
    pod.next.push(
      response => { response.writeHead(200, { ...headers, 'content-length': bytes.length }).end(bytes) },
      response => {
        response.writeHead(200, headers)
        response.write(bytes.subarray(0, 1))
        response.end(bytes.subarray(1))
      }
    )
    const client = await scene.client()
    for (const length of [[String(bytes.length)], []]) {
      const reply = await client.ask(toRequest('GET /d/x'))
      assert.equal(reply.statusCode, 200)
      assert.equal(reply.isComplete, true)
      assert.deepEqual(reply.body, bytes)
      assert.deepEqual(reply.values('content-type'), type === undefined ? [] : [type])
      assert.deepEqual(reply.values('content-encoding'), encoding === undefined ? [] : [encoding])
      assert.deepEqual(reply.values('content-length'), length)
      assert.equal(reply.chunkSizes !== undefined, length.length === 0)
    }
  })
}

test('request bytes: a DELETE of type JSON without a body passes, with a length of 0 and with none (G13)', async t => {
  const { scene, pod } = await setProxy(t)
  for (const headers of [{ 'content-type': 'application/json' }, { 'content-type': 'application/json', 'content-length': '0' }]) {
    const reply = await scene.ask(toRequest('DELETE /d/x', headers))
    assert.equal(reply.statusCode, 200)
  }
  for (const request of pod.requests) {
    assert.deepEqual([request.method, request.values('content-type'), request.body.length], ['DELETE', ['application/json'], 0])
    assert.deepEqual(request.values('transfer-encoding'), [])
  }
  assert.equal(pod.requests.length, 2)
})

for (const method of ['POST', 'PUT', 'PATCH']) {
  test(`request bytes: a ${method} without a body keeps its type and says a length of 0`, async t => {
    const { scene, pod } = await setProxy(t)
    for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain', 'content-length': '0' }]) {
      const reply = await scene.ask(toRequest(`${method} /d/x`, headers as Record<string, string>))
      assert.equal(reply.statusCode, 200)
    }
    assert.deepEqual(pod.requests.map(request => [request.values('content-type'), request.values('content-length'), request.body.length]), [
      [[], ['0'], 0], [['application/json'], ['0'], 0], [['text/plain'], ['0'], 0]
    ])
  })
}

test('request bytes: chunks without a byte in them pass as an empty body', async t => {
  const { scene, pod } = await setProxy(t)
  const reply = await scene.ask(Buffer.concat([toRequest('POST /d/x', { 'transfer-encoding': 'chunked', 'content-type': 'application/json' }), toChunks([])]))
  assert.equal(reply.statusCode, 200)
  assert.equal(pod.requests[0]?.body.length, 0)
  assert.deepEqual(pod.requests[0]?.values('content-type'), ['application/json'])
})

test('request bytes: 64 KiB are held aside until they are whole, and one byte more streams', async t => {
  const { scene, pod } = await setProxy(t)
  const bytes = randomBytes(64 * 1024 + 1)
  const held = await scene.client()
  const request = toRequest('PUT /d/x', { 'content-type': 'application/octet-stream' }, bytes.subarray(1))
  held.write(request.subarray(0, -1))

  const streamed = await scene.client()
  const other = toRequest('POST /d/x', { 'content-type': 'application/octet-stream' }, bytes)
  streamed.write(other.subarray(0, -1))
  await until(() => pod.requests[0]?.body.length === bytes.length - 1, 'all but the last byte of the streamed body is with the pod')
  streamed.write(other.subarray(-1))
  assert.equal((await streamed.readReply()).statusCode, 200)
  // The held one was sent before: it would have come by now.
  assert.deepEqual(pod.requests.map(({ method }) => method), ['POST'])

  held.write(request.subarray(-1))
  assert.equal((await held.readReply()).statusCode, 200)
  assert.deepEqual(pod.requests[0]?.body, bytes)
  assert.deepEqual(pod.requests[1]?.body, bytes.subarray(1))
  assert.deepEqual(pod.requests.map(request => request.values('content-length')), [['65537'], ['65536']])
})

test('request bytes: a body in chunks streams however small it is', async t => {
  const { scene, pod } = await setProxy(t)
  const client = await scene.client()
  client.write(toRequest('PUT /d/x', { 'transfer-encoding': 'chunked' }))
  client.write('3\r\nabc\r\n')
  await until(() => pod.requests[0]?.body.toString() === 'abc', 'the first chunk is with the pod')
  client.write('0\r\n\r\n')
  assert.equal((await client.readReply()).statusCode, 200)
  assert.equal(pod.requests[0]?.isWhole, true)
})

test('request bytes: 8 MiB pass in both directions, past the limit Fastify has for what it parses (G46)', async t => {
  const { scene, pod } = await setProxy(t)
  const bytes = randomBytes(8 * 1024 * 1024)
  pod.answer = (response, { body }) => { response.end(body) }
  const reply = await scene.ask(toRequest('POST /d/x', { 'content-type': 'application/json' }, bytes))
  assert.equal(reply.statusCode, 200)
  assert.ok(pod.requests[0]?.body.equals(bytes))
  assert.ok(reply.body.equals(bytes))
})

test('request bytes: many requests of several types at once on several connections are not mixed up', async t => {
  const { scene, pod } = await setProxy(t)
  pod.answer = (response, { body, headers }) => { response.writeHead(200, { 'content-type': headers['content-type'] ?? 'none' }).end(body) }
  await Promise.all(bodies.flatMap(each => [each, each, each]).map(async ({ type = 'none', bytes }, at) => {
    const body = Buffer.concat([bytes, Buffer.from(String(at))])
    const reply = await scene.ask(toRequest('POST /d/x', { 'content-type': type === '' ? 'none' : type }, body))
    assert.deepEqual(reply.body, body)
    assert.deepEqual(reply.values('content-type'), [type === '' ? 'none' : type])
  }))
})
