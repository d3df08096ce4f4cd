import assert from 'node:assert/strict'
import test from 'node:test'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { openSocket, startSocketPod } from '../support/socket-pod.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }
const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }

test('websocket: a client that leaves before the pod answers cancels the request at the pod', limit, async t => {
  for (const how of ['destroy', 'end'] as const) {
    const scene = await setHttpScene(t)
    let isClosed = false
    const pod = await startSocketPod(t, (_raw, socket) => {
      socket.once('close', () => { isClosed = true }).on('end', () => socket.destroy()).resume()
      return true
    })
    await scene.register('pod-1', pod.address, ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
    const client = await scene.client()
    client.write(toRequest('GET /d/x', { connection: 'Upgrade', upgrade: 'websocket' }))
    await until(() => pod.upgrades.length === 1, 'the pod has it')
    client.socket[how]()
    await until(() => isClosed, `the request is cancelled at the pod after ${how}`, 5000)
    await until(() => scene.results.length === 1, 'the result is told')
    assert.deepEqual(scene.results, ['aborted'])
  }
})

test('websocket: a pod that declines with a reply in chunks is passed on so that the client can read it, and ends', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t, (_raw, socket) => {
    socket.end('HTTP/1.1 401 Unauthorized\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\nx-pod: own\r\n\r\n5\r\nfirst\r\n7\r\n second\r\n0\r\n\r\n')
    return true
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  const client = await scene.client()
  const reply = await client.ask(toRequest('GET /d/x', upgrade))
  assert.deepEqual([reply.statusCode, reply.values('x-pod'), reply.body.toString(), reply.isComplete], [401, ['own'], 'first second', true])
  await until(() => client.reader.isEnded, 'the connection ends', 5000)
  assert.deepEqual(scene.results, ['hit'])
})

test('websocket: a pod that declines and breaks off within its reply ends the client\'s connection', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t, (_raw, socket) => {
    socket.write('HTTP/1.1 401 Unauthorized\r\ncontent-length: 100\r\n\r\nfirst')
    setTimeout(() => socket.destroy(), 100)
    return true
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  const client = await scene.client()
  client.write(toRequest('GET /d/x', upgrade))
  await until(() => client.reader.bytes.includes('first'), 'the part came')
  await until(() => client.reader.isEnded, 'the connection ends', 5000)
})

test('websocket: a pod that takes more than a second to accept is not given up, on a kept connection neither', limit, async t => {
  const scene = await setHttpScene(t)
  // An HTTP pod declines on a connection that is kept; its upgrade listener comes later.
  const pod = await startPod(t, response => { response.writeHead(200).end('no') })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  assert.equal((await scene.ask(toRequest('GET /d/x', upgrade))).statusCode, 200)
  pod.answer = response => { setTimeout(() => response.writeHead(403).end('no'), 1800) }
  assert.equal((await scene.ask(toRequest('GET /d/x', upgrade))).statusCode, 403)
  assert.equal(pod.requests.length, 2, 'it is asked once')
  assert.deepEqual(scene.results, ['hit', 'hit'])
})

test('websocket: an offer of h2c is passed over on every route, with the body of its request', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const socketPod = await startSocketPod(t)
  await scene.register('pod-2', socketPod.address, ['ws'])
  scene.app.get('/ws/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  scene.app.post('/own', async request => request.body)
  const offer = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' }

  assert.equal((await scene.ask(toRequest('GET /d/x', offer))).statusCode, 200)
  assert.deepEqual([pod.requests[0]?.values('upgrade'), pod.requests[0]?.values('http2-settings')], [[], []])
  const posted = await scene.ask(toRequest('POST /d/x', offer, 'body'))
  assert.deepEqual([posted.statusCode, pod.requests[1]?.body.toString()], [200, 'body'])
  assert.equal((await scene.ask(toRequest('GET /ws/ws', offer))).body.toString(), 'no upgrade')
  const own = await scene.ask(toRequest('POST /own', { ...offer, 'content-type': 'application/json' }, '{"a":1}'))
  assert.deepEqual([own.statusCode, own.body.toString()], [200, '{"a":1}'])
  const { socket } = await openSocket(t, scene, '/ws/ws')
  assert.equal(socket.readyState, socket.OPEN)
})

test('websocket: 30 requests with an offer of h2c on one connection are served in turn, large bodies whole, and nothing piles up on it', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: (response, request) => { response.end(request.body) } })
  scene.app.get('/ws/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  const warnings: Error[] = []
  const onWarning = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', onWarning)
  t.after(() => { process.off('warning', onWarning) })
  const client = await scene.client()
  for (let count = 0; count < 30; count++) {
    const body = Buffer.alloc(count * 50_000, 'abc\r\n')
    const offer = count % 3 === 2 ? {} : { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' }
    const reply = await client.ask(toRequest('POST /d/x', offer, body))
    assert.ok(reply.statusCode === 200 && reply.body.equals(body), `request ${count}`)
  }
  assert.equal(pod.requests.length, 30)
  assert.deepEqual(warnings.map(String), [])
})
