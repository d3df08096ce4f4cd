import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpSceneOptions } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { exchange, openSocket, startSocketPod } from '../support/socket-pod.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }

async function setScene (t: test.TestContext, options?: HttpSceneOptions) {
  const scene = await setHttpScene(t, options)
  const pod = await startSocketPod(t)
  const member = await scene.register('pod-1', pod.address, ['x'])
  await member.registerLock('lock', 'x')
  const { app, coordinator, onResult } = scene
  app.get('/d/:id', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult }))
  app.get('/l/:id', coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, websocket: true, onResult }))
  return { scene, pod }
}

test('websocket: messages of both kinds and of every size come back as they went, over a destination and over a lock', limit, async t => {
  const { scene } = await setScene(t)
  for (const path of ['/d/x', '/l/lock']) {
    const { socket } = await openSocket(t, scene, path)
    for (const message of ['text ü 😀', Buffer.from([0, 255, 1]), Buffer.alloc(3_000_000, 'abc')]) {
      assert.ok((await exchange(socket, message)).equals(Buffer.from(message)), path)
    }
  }
  assert.deepEqual(scene.results, ['hit', 'hit'])
})

test('websocket: path, query, headers and subprotocol reach the pod, the pod\'s choice reaches the client', limit, async t => {
  const { scene, pod } = await setScene(t)
  const { socket } = await openSocket(t, scene, '/d/x?a=%2F&b=1', ['first', 'second'], {
    headers: { 'x-own': 'yes', cookie: 'a=1', 'x-coordinator-epoch': '9', 'x-forwarded-for': '6.6.6.6', authorization: 'Bearer abc' }, origin: 'http://page.test'
  })
  assert.equal(socket.protocol, 'second')
  const [upgrade] = pod.upgrades
  assert.equal(upgrade?.url, '/d/x?a=%2F&b=1')
  const { headers } = upgrade as { headers: Record<string, string> }
  assert.deepEqual([headers['x-own'], headers.cookie, headers.authorization, headers.origin, headers['x-coordinator-epoch']], ['yes', 'a=1', 'Bearer abc', 'http://page.test', undefined])
  assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-proto']], ['127.0.0.1', 'http'])
  assert.match(headers['x-forwarded-host'] as string, /^127\.0\.0\.1:\d+$/)
  assert.equal(headers.host, `127.0.0.1:${pod.port}`)
})

test('websocket: bytes sent right behind the upgrade, and by the pod right behind its 101, arrive in order', limit, async t => {
  const scene = await setHttpScene(t)
  const got: Buffer[] = []
  const pod = await startSocketPod(t, (raw, socket, head) => {
    const accept = createHash('sha1').update(`${raw.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\nx-pod: own\r\n\r\nearly from the pod`)
    got.push(head)
    socket.on('data', chunk => got.push(chunk))
    return true
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  const client = await scene.client()
  client.write(Buffer.concat([toRequest('GET /d/x', { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }), Buffer.from('early ')]))
  client.write('data')
  const reply = await client.readReply()
  assert.deepEqual([reply.statusCode, reply.values('upgrade'), reply.values('x-pod'), reply.values('sec-websocket-accept')], [101, ['websocket'], ['own'], ['s3pPLMBiTxaQ9kYGzzhZRbK+xOo=']])
  await until(() => client.reader.bytes.toString() === 'early from the pod', 'the pod\'s early bytes came')
  await until(() => Buffer.concat(got).toString() === 'early data', 'the client\'s early bytes came')
})

test('websocket: rewriteRequestHeaders is applied to upgrades after the helper\'s duty', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t)
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id, websocket: true, rewriteRequestHeaders: (_request, headers) => ({ ...headers, 'x-added': 'yes' })
  }))
  await openSocket(t, scene, '/d/x', [], { headers: { 'x-coordinator-epoch': '9' } })
  assert.deepEqual([pod.upgrades[0]?.headers['x-added'], pod.upgrades[0]?.headers['x-coordinator-epoch']], ['yes', undefined])
})

test('websocket: the close of one side reaches the other, with its code', limit, async t => {
  const { scene, pod } = await setScene(t)
  const first = await openSocket(t, scene, '/d/x')
  await until(() => pod.open.size === 1, 'the pod has it')
  first.socket.close(4001, 'done')
  const podSide = [...pod.open][0]
  const code = await new Promise(resolve => podSide?.once('close', resolve))
  assert.equal(code, 4001)
  assert.equal(await first.closed, 4001)
  const second = await openSocket(t, scene, '/d/x')
  await until(() => pod.open.size === 1, 'the pod has it')
  for (const socket of pod.open) socket.close(4002)
  assert.equal(await second.closed, 4002)
  const third = await openSocket(t, scene, '/d/x')
  await until(() => pod.open.size === 1, 'the pod has it')
  third.socket.terminate()
  await until(() => pod.open.size === 0, 'the pod saw it leave', 5000)
})

test('websocket: what the pod sent before it ended its side reaches a slow client whole', limit, async t => {
  const size = 20_000_000
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t, (_raw, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n')
    socket.end(Buffer.alloc(size, 'a'))
    return true
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  const client = await scene.client()
  client.write(toRequest('GET /d/x', { connection: 'Upgrade', upgrade: 'websocket' }))
  // Read slowly, so that the end of the pod comes while bytes still wait in the application.
  let received = 0
  client.socket.removeAllListeners('data').on('data', chunk => {
    received += chunk.length
    client.socket.pause()
    setTimeout(() => client.socket.resume(), 2)
  })
  let isEnded = false
  client.socket.once('close', () => { isEnded = true })
  await until(() => isEnded, 'the connection ended')
  assert.ok(received >= size, `${size - received} bytes and more are missing`)
})
