import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { refusalLines } from '../support/refusals.ts'
import { until } from '../support/store.ts'

/** The issue asks for seconds. */
const soonMs = 5000
const head = { 'content-type': 'application/json' }

async function setScene (t: test.TestContext) {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: () => {} })
  const { onResult } = scene
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))
  scene.app.post('/create', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult }))
  return { scene, pod }
}

test('G05, G34: a client that leaves before the reply cancels the request at the pod, and the result is aborted, once', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  const requests = [
    toRequest('GET /d/x'), toRequest('POST /d/x', {}, 'held aside'), toRequest('POST /create', {}, '{}'),
    toRequest('POST /d/x', { 'content-length': '100000' }, Buffer.alloc(100_000))
  ]
  for (const [at, bytes] of requests.entries()) {
    const client = await scene.client()
    client.write(bytes)
    await until(() => pod.requests[at]?.isWhole, 'the pod has the request')
    client.socket.destroy()
    await until(() => pod.requests[at]?.isCancelled, `request ${at} is cancelled at the pod`, soonMs)
    await until(() => scene.results.length === at + 1, 'the result is told', soonMs)
  }
  assert.deepEqual(scene.results, requests.map(() => 'aborted'))
  assert.equal(pod.requests.length, requests.length, 'nothing is sent again')
  assert.deepEqual(refusalLines(scene).map(({ code }) => code), requests.map(() => 'PLT_COORDINATOR_CLIENT_GONE'))
})

test('G05: a client that leaves after the reply began cancels the request at the pod', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  pod.answer = response => { response.write('begun') }
  const client = await scene.client()
  client.write(toRequest('GET /d/x'))
  await until(() => client.reader.bytes.includes('begun'), 'the reply began')
  client.socket.destroy()
  await until(() => pod.requests[0]?.isCancelled, 'the request is cancelled at the pod', soonMs)
  assert.deepEqual(scene.results, ['hit'])
})

test('G05: a client that leaves in the middle of a streamed upload cancels the request at the pod, and nothing is sent again', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  for (const [at, headers] of [{ 'content-length': '1000000' }, { 'transfer-encoding': 'chunked' }].entries()) {
    const client = await scene.client()
    client.write(toRequest('PUT /d/x', headers, at === 0 ? 'part' : ''))
    if (at === 1) client.write('4\r\npart\r\n')
    await until(() => pod.requests[at]?.body.toString() === 'part', 'the first part reached the pod')
    client.socket.destroy()
    await until(() => pod.requests[at]?.isCancelled, 'the request is cancelled at the pod', soonMs)
    await until(() => scene.results.length === at + 1, 'the result is told', soonMs)
    assert.equal(pod.requests[at]?.isWhole, false, 'the pod does not take the part for the whole')
  }
  assert.equal(pod.requests.length, 2)
  assert.deepEqual(scene.results, ['aborted', 'aborted'])
})

test('G05: a client that leaves while its body is held aside asks no pod', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  const client = await scene.client()
  client.write(toRequest('PUT /d/x', { 'content-length': '1000' }, 'part'))
  await until(() => scene.logs.some(({ msg }) => msg === 'incoming request'), 'the request came')
  client.socket.destroy()
  await until(() => scene.results.length === 1, 'the result is told', soonMs)
  assert.deepEqual(scene.results, ['aborted'])
  assert.equal(pod.requests.length, 0)
})

test('G05: a client that leaves while its destination is looked for asks no pod', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  let found: ((id: string) => void) | undefined
  scene.app.get('/slow', scene.coordinator.lookupAndProxy({ destinationFrom: () => new Promise<string>(resolve => { found = resolve }), onResult: scene.onResult }))
  const client = await scene.client()
  client.write(toRequest('GET /slow'))
  await until(() => found !== undefined, 'destinationFrom is asked')
  client.socket.destroy()
  await until(async () => await connections(scene.app.server) === 0, 'the application saw it leave')
  found?.('x')
  await until(() => scene.results.length === 1, 'the result is told', soonMs)
  assert.deepEqual(scene.results, ['aborted'])
  assert.equal(pod.requests.length, 0)
})

test('aborts: a create whose pod has begun its reply is bound although the client left', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  let finish: (() => void) | undefined
  pod.answer = response => {
    response.writeHead(201, head).write('{"id":')
    finish = () => response.end('"new"}')
  }
  const client = await scene.client()
  client.write(toRequest('POST /create', {}, '{}'))
  await until(() => finish !== undefined, 'the pod began')
  await until(() => pod.sockets.size === 1, 'the pod is connected')
  // Until the headers are read, leaving means that nothing began: give them the way of another request through the same application.
  await scene.pod('pod-2', { destinationIds: ['y'] }).then(async () => assert.equal((await scene.ask(toRequest('GET /d/y'))).statusCode, 200))
  client.socket.destroy()
  await until(async () => await connections(scene.app.server) === 0, 'the application saw it leave')
  finish?.()
  await until(async () => (await scene.pods('new')).length === 1, 'the destination is bound', soonMs)
  await until(() => scene.results.length === 2, 'the result is told', soonMs)
  assert.equal(scene.results.filter(result => result === 'spawned').length, 1)
})

test('aborts: 100 clients that leave leave no connection to the pod behind, and the next request is served', { timeout: 60_000 }, async t => {
  const { scene, pod } = await setScene(t)
  const clients = await Promise.all(Array.from({ length: 100 }, () => scene.client()))
  for (const client of clients) client.write(toRequest('GET /d/x'))
  await until(() => pod.requests.length === 100, 'the pod has all requests')
  for (const client of clients) client.socket.destroy()
  await until(() => pod.sockets.size === 0, 'no connection to the pod is left', soonMs)
  assert.ok(pod.requests.every(({ isCancelled }) => isCancelled))
  pod.answer = response => { response.end('ok') }
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  await until(() => scene.results.length === 101, 'every result is told')
  assert.equal(scene.results.filter(result => result === 'aborted').length, 100)
})

async function connections (server: { getConnections (callback: (error: Error | null, count: number) => void): unknown }): Promise<number> {
  return await new Promise((resolve, reject) => server.getConnections((error, count) => error === null ? resolve(count) : reject(error)))
}
