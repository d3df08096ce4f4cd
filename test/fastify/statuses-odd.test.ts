import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'

function addRoute (scene: HttpScene): void {
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
}

test('an HTTP/1.0 client gets a reply in chunks as bytes until the end, without trailers', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n'), toChunks(['abc', 'def'], { 'X-Sum': '1' })]))
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  const client = await scene.client()
  const reply = await client.ask('GET /d/x HTTP/1.0\r\nhost: app.test\r\n\r\n')
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.chunkSizes], [200, 'abcdef', undefined])
})

test('a pod of HTTP/1.0, whose reply lasts until it closes, is passed on', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, socket => { socket.end('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nabc') })
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete, reply.values('content-type')], [200, 'abc', true, ['text/plain']])
})

test('a reason of the pod\'s own, or none, passes as the status it belongs to', async t => {
  const scene = await setHttpScene(t)
  for (const [id, line] of [['own', 'HTTP/1.1 200 Very fine indeed'], ['none', 'HTTP/1.1 200 '], ['odd', 'HTTP/1.1 299 \xe4']] as const) {
    const pod = await startRawPod(t, `${line}\r\nContent-Length: 2\r\n\r\nok`)
    await scene.register(`pod-${id}`, pod.address, [id])
  }
  addRoute(scene)
  for (const [id, status] of [['own', 200], ['none', 200], ['odd', 299]] as const) {
    const reply = await scene.ask(toRequest(`GET /d/${id}`))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [status, 'ok'], id)
  }
})

test('a reply that is not HTTP is 502, and the next request is served', async t => {
  const scene = await setHttpScene(t)
  for (const [id, bytes] of [['text', 'SSH-2.0-x\r\n\r\n'], ['status', 'HTTP/1.1 abc OK\r\n\r\n'], ['lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab']] as const) {
    const pod = await startRawPod(t, bytes)
    await scene.register(`pod-${id}`, pod.address, [id])
  }
  await scene.pod('pod-1', { destinationIds: ['x'] })
  addRoute(scene)
  for (const id of ['text', 'status', 'lengths']) {
    assert.equal((await scene.ask(toRequest(`POST /d/${id}`, {}, 'abc'))).statusCode, 502, id)
    assert.equal((await scene.ask(toRequest('POST /d/x', {}, 'abc'))).statusCode, 200)
  }
})

test('a response schema on the route does not touch the reply of the pod', async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.writeHead(201, { 'content-type': 'application/json' }).end('{ "id": "new", "other": 1.0 }') } })
  const schema = { response: { '2xx': { type: 'object', properties: { id: { type: 'number' } } } } }
  scene.app.get('/d/:id', { schema }, scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  scene.app.post('/d', { schema }, scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id }))
  for (const line of ['GET /d/x', 'POST /d']) {
    const reply = await scene.ask(toRequest(line))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [201, '{ "id": "new", "other": 1.0 }'])
  }
  assert.deepEqual(await scene.pods('new'), ['pod-1'])
})

test('requests one behind the other on one connection are answered in order', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: (response, { body }) => { response.end(body) } })
  addRoute(scene)
  const client = await scene.client()
  client.write(Buffer.concat(['a', 'b', 'c'].map(body => toRequest('POST /d/x', {}, body))))
  for (const body of ['a', 'b', 'c']) assert.equal((await client.readReply()).body.toString(), body)
  assert.equal(pod.requests.length, 3)
})
