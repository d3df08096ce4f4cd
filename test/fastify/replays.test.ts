import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'
import { readRefusal } from '../support/refusals.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }

function addRoute (scene: HttpScene): void {
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
}

/** A pod that cuts the connection at each request of a given number, and answers the others. */
async function setCuttingScene (t: test.TestContext, isCut: (count: number) => boolean) {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, socket => {
    if (isCut(pod.requests.length)) socket.destroy()
    else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
  })
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  return { scene, pod }
}

test('G20: a pod\'s own 503 with Retry-After is passed on after one request, for each method', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.writeHead(503, { 'retry-after': '1', 'x-pod': 'own' }).end('busy') } })
  addRoute(scene)
  for (const [at, method] of ['GET', 'OPTIONS', 'POST', 'DELETE'].entries()) {
    const reply = await scene.ask(toRequest(`${method} /d/x`))
    assert.deepEqual([reply.statusCode, reply.values('retry-after'), reply.values('x-pod'), reply.body.toString()], [503, ['1'], ['own'], 'busy'])
    assert.equal(pod.requests.length, at + 1)
  }
  assert.deepEqual(scene.results, ['hit', 'hit', 'hit', 'hit'])
})

test('G20: 429, 500, 502 and 504 of a pod are passed on after one request', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: (response, { url }) => { response.writeHead(Number(url.split('?')[1]), { 'retry-after': '0' }).end('own') } })
  addRoute(scene)
  for (const status of [429, 500, 502, 504]) {
    const reply = await scene.ask(toRequest(`GET /d/x?${status}`))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [status, 'own'])
  }
  assert.equal(pod.requests.length, 4)
})

test('G31: GET, HEAD and OPTIONS cut before a byte of the reply are sent once more', limit, async t => {
  const { scene, pod } = await setCuttingScene(t, count => count % 2 === 1)
  for (const [at, method] of ['GET', 'HEAD', 'OPTIONS'].entries()) {
    const reply = await scene.ask(toRequest(`${method} /d/x`))
    assert.equal(reply.statusCode, 200, method)
    assert.deepEqual(pod.requests.slice(at * 2).map(({ words }) => words[0]), [method, method])
  }
  assert.deepEqual(scene.results, ['hit', 'hit', 'hit'])
})

test('G31: POST, PUT, PATCH and DELETE cut before a byte of the reply are never sent again', limit, async t => {
  const { scene, pod } = await setCuttingScene(t, () => true)
  for (const [at, method] of ['POST', 'PUT', 'PATCH', 'DELETE'].entries()) {
    const reply = await scene.ask(toRequest(`${method} /d/x`, {}, at % 2 === 0 ? 'body' : undefined))
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'], method)
    assert.equal(pod.requests.length, at + 1, method)
  }
  assert.deepEqual(scene.results, ['unreachable', 'unreachable', 'unreachable', 'unreachable'])
})

test('G31: a GET that is cut twice is 502 after two requests', limit, async t => {
  const { scene, pod } = await setCuttingScene(t, () => true)
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(readRefusal(reply).statusCode, 502)
  assert.equal(pod.requests.length, 2)
  assert.deepEqual(scene.results, ['unreachable'])
})

test('G31: an idle connection that the pod closes just as a request is sent costs a GET nothing', limit, async t => {
  const scene = await setHttpScene(t)
  // The second request on a connection finds it closed: the pod read it and answers with the end of the connection.
  const seen = new WeakSet<object>()
  const pod = await startRawPod(t, socket => {
    if (seen.has(socket)) socket.destroy()
    else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    seen.add(socket)
  })
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  for (let count = 0; count < 3; count++) assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  assert.equal(pod.requests.length, 5, 'the second and the third came twice')
  const reply = await scene.ask(toRequest('POST /d/x', {}, 'body'))
  assert.equal(reply.statusCode, 502)
  assert.equal(pod.requests.length, 6)
})

test('replays: an OPTIONS with a body held aside is sent again with it, one with a streamed body is not', limit, async t => {
  const { scene, pod } = await setCuttingScene(t, count => count % 2 === 1)
  assert.equal((await scene.ask(toRequest('OPTIONS /d/x', {}, 'held'))).statusCode, 200)
  assert.deepEqual(pod.requests.map(({ body }) => body.toString()), ['held', 'held'])
  const reply = await scene.ask(Buffer.concat([toRequest('OPTIONS /d/x', { 'transfer-encoding': 'chunked' }), toChunks(['streamed'])]))
  assert.equal(reply.statusCode, 502)
  assert.equal(pod.requests.length, 3)
})

test('replays: a timeout is no ground to send a GET again', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: () => {} })
  await scene.pod('pod-2', { destinationIds: ['x'], answer: () => {} })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, requestTimeout: 200, onResult: scene.onResult }))
  await Promise.all([scene.ask(toRequest('GET /d/x')), scene.ask(toRequest('GET /d/x'))])
  await until(() => scene.results.length === 2, 'both are told')
  assert.equal(pod.requests.length, 1, 'one each')
})
