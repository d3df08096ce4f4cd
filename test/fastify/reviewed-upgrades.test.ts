import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import test from 'node:test'
import type { FastifyInstance } from 'fastify'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress, readRefusal } from '../support/refusals.ts'
import { exchange, openSocket, startSocketPod } from '../support/socket-pod.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }
const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }
const handshake = { ...upgrade, 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }

test('websocket: routes in two sibling scopes both take upgrades, and their application closes', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t)
  await scene.register('pod-1', pod.address, ['x'])
  for (const prefix of ['/one', '/two']) {
    await scene.app.register(async (scope: FastifyInstance) => {
      scope.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
    }, { prefix })
  }
  for (const path of ['/one/d/x', '/two/d/x', '/one/d/x']) {
    const { socket } = await openSocket(t, scene, path)
    assert.equal((await exchange(socket, path)).toString(), path)
  }
  assert.equal(pod.upgrades.length, 3, 'each is asked for once')
  assert.deepEqual(scene.results, ['hit', 'hit', 'hit'])
})

for (const [what, rewriteHeaders] of [
  ['throws', () => { throw new Error('rewritten') }],
  ['gives a value with a line break', (headers: object) => ({ ...headers, 'x-mine': 'a\r\nx-second: b' })]
] as const) {
  test(`websocket: rewriteHeaders that ${what} when a pod declines is a 500, and the pod's reply is given up`, limit, async t => {
    const scene = await setHttpScene(t)
    let isClosed = false
    const pod = await startSocketPod(t, (_raw, socket) => {
      socket.once('close', () => { isClosed = true }).on('end', () => socket.destroy()).resume()
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nx-pod: own\r\n\r\nsecret')
      return true
    })
    await scene.register('pod-1', pod.address, ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult, rewriteHeaders }))
    const reply = await scene.ask(toRequest('GET /d/x', upgrade))
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [500, 'PLT_COORDINATOR_CALLBACK_FAILED'])
    for (const name of ['x-second', 'x-mine', 'x-pod']) assert.deepEqual(reply.values(name), [], name)
    await until(() => isClosed, 'the pod is rid of its reply', 5000)
    assert.deepEqual(scene.results, ['upstream_error'])
    assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 500, 'the application serves on')
  })
}

test('websocket: onError answers for a dead pod, which is asked once when it is the only owner', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.register('dead', deadAddress, ['x'])
  let askedCount = 0
  const failures: unknown[] = []
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id,
    websocket: true,
    onResult: scene.onResult,
    rewriteRequestHeaders: (_request, headers) => {
      askedCount++
      return headers
    },
    onError: (reply, { statusCode, code, error }) => {
      failures.push([statusCode, code, error instanceof Error])
      return reply.code(418).send({ own: true })
    }
  }))
  const { refused } = await openSocket(t, scene, '/d/x')
  assert.deepEqual([refused?.statusCode, refused?.body], [418, '{"own":true}'])
  assert.deepEqual(failures, [[502, 'PLT_COORDINATOR_POD_UNREACHABLE', true]])
  assert.deepEqual([askedCount, scene.results], [1, ['unreachable']])
})

test('websocket: the application\'s own routes serve requests that offer an upgrade as ordinary ones', limit, async t => {
  const scene = await setHttpScene(t)
  const size = 25 * 1024 * 1024
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/ws/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  scene.app.post('/own', async request => request.body)
  scene.app.get('/large', async (_request, reply) => reply.send(Readable.from(Array.from({ length: size / 65_536 }, () => Buffer.alloc(65_536, 'x')), { objectMode: false })))

  const client = await scene.client()
  for (const text of ['{"a":1}', '{"b":2}']) {
    const echo = await client.ask(toRequest('POST /own', { ...handshake, 'content-type': 'application/json' }, text))
    assert.deepEqual([echo.statusCode, echo.body.toString()], [200, text])
  }
  const large = await scene.ask(toRequest('GET /large', handshake))
  assert.deepEqual([large.statusCode, large.isComplete, large.body.length], [200, true, size])
  const refused = await scene.ask(toRequest('GET /d/x', handshake))
  assert.deepEqual([refused.statusCode, readRefusal(refused).code], [501, 'PLT_COORDINATOR_UPGRADE_NOT_SUPPORTED'])
  assert.equal(pod.requests.length, 0)
})
