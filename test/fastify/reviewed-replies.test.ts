import assert from 'node:assert/strict'
import test from 'node:test'
import { setCreate } from '../support/creates.ts'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { readRefusal } from '../support/refusals.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }
const json = { 'content-type': 'application/json' }

test('replies: rewriteHeaders that gives a value with a line break is a 500 told once, and the next request is served', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.writeHead(200, { 'x-pod': 'own' }).end('secret') } })
  for (const [path, value] of [['/bad', 'a\r\nx-second: b'], ['/good', 'a']] as const) {
    scene.app.get(`${path}/:id`, scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult, rewriteHeaders: headers => ({ ...headers, 'x-mine': value }) }))
  }
  const reply = await scene.ask(toRequest('GET /bad/x'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [500, 'PLT_COORDINATOR_CALLBACK_FAILED'])
  for (const name of ['x-second', 'x-mine', 'x-pod']) assert.deepEqual(reply.values(name), [], name)
  assert.deepEqual(scene.results, ['upstream_error'])
  const good = await scene.ask(toRequest('GET /good/x'))
  assert.deepEqual([good.statusCode, good.values('x-mine'), good.body.toString()], [200, ['a'], 'secret'])
  assert.deepEqual([scene.results, pod.requests.length], [['upstream_error', 'hit'], 2])
})

test('creates: a client that leaves a reply past replyLimit whose pod pauses has the pod\'s connection closed', limit, async t => {
  const { scene, pod, bound } = await setCreate(t, 201, json, '', { replyLimit: 1000 })
  pod.answer = response => { response.writeHead(201, json).write('x'.repeat(2000)) }
  const client = await scene.client()
  client.write(toRequest('POST /d', json, '{}'))
  await until(() => client.reader.bytes.includes('xxx'), 'the reply begins')
  assert.equal(pod.requests[0]?.isCancelled, false)
  client.socket.destroy()
  await until(() => pod.requests[0]?.isCancelled === true && pod.sockets.size === 0, 'the pod\'s connection is closed', 5000)
  assert.deepEqual([scene.results, await bound()], [['upstream_error'], []])
})

test('creates: a client that left before its reply grew past replyLimit does not keep the pod\'s connection open', limit, async t => {
  const { scene, pod, bound } = await setCreate(t, 201, json, '', { replyLimit: 1000 })
  let goOn = (): void => {}
  pod.answer = response => {
    response.writeHead(201, json).write('x')
    goOn = () => { response.write('x'.repeat(2000)) }
  }
  const client = await scene.client()
  client.write(toRequest('POST /d', json, '{}'))
  await until(() => pod.requests[0]?.isWhole === true, 'the pod has the request')
  client.socket.destroy()
  await until(() => new Promise(resolve => scene.app.server.getConnections((_error, count) => resolve(count === 0))), 'the application saw the client leave')
  goOn()
  await until(() => pod.requests[0]?.isCancelled === true && pod.sockets.size === 0, 'the pod\'s connection is closed', 5000)
  assert.deepEqual([scene.results.length, await bound()], [1, []])
})

test('creates: a pod that stops within its 201 is a 504 by idleTimeout, and nothing is bound', limit, async t => {
  const { scene, pod, bound, create } = await setCreate(t, 201, json, '', { idleTimeout: 300 })
  pod.answer = response => { response.writeHead(201, { ...json, 'x-made': '1' }).write('{"id":') }
  const reply = await create()
  assert.deepEqual([reply.statusCode, readRefusal(reply).code, reply.values('x-made')], [504, 'PLT_COORDINATOR_POD_TIMEOUT', []])
  await until(() => pod.requests[0]?.isCancelled === true, 'the pod\'s connection is closed', 5000)
  assert.deepEqual([scene.results, await bound()], [['timeout'], []])
})

test('creates: an event stream is passed on at once, unbound, as upstream_error', limit, async t => {
  const { scene, pod, bound, warnings } = await setCreate(t, 201, json, '')
  pod.answer = response => { response.writeHead(201, { 'content-type': 'text/event-stream; charset=utf-8' }).write('data: {"id":"new"}\n\n') }
  const client = await scene.client()
  client.write(toRequest('POST /d', json, '{}'))
  await until(() => client.reader.bytes.includes('data: {"id":"new"}'), 'the first event came', 5000)
  assert.deepEqual([scene.results, await bound(), warnings()], [['upstream_error'], [], ['PLT_COORDINATOR_NOT_BOUND']])
  client.socket.destroy()
  await until(() => pod.requests[0]?.isCancelled === true, 'the pod\'s stream is closed when its client leaves', 5000)
})

test('creates: the 409 of ifBound \'refuse\' keeps the headers of the application, those the pod sent too', limit, async t => {
  const cors = { 'access-control-allow-origin': 'https://app.test', vary: 'Origin' }
  const { scene, bound } = await setCreate(t, 201, json, '')
  scene.app.addHook('onRequest', async (_request, reply) => { reply.headers({ ...cors, 'x-app': '1' }) })
  const pod = await scene.pod('pod-2', { answer: response => { response.writeHead(201, { ...json, 'access-control-allow-origin': '*', vary: 'Accept', 'x-made': '1' }).end('{"id":"x"}') } })
  await scene.register('pod-3', pod.address, ['x'])
  scene.app.post('/e', scene.coordinator.pickAndRegister({ registerIdFrom: reply => reply.id, ifBound: 'refuse', onResult: scene.onResult }))
  scene.coordinator.registry.pickMember = async () => ({ memberId: 'pod-2', address: pod.address, load: 0 }) as never
  const reply = await scene.ask(toRequest('POST /e', json, '{}'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [409, 'PLT_COORDINATOR_ALREADY_BOUND'])
  assert.deepEqual(['access-control-allow-origin', 'vary', 'x-app', 'x-made'].map(name => reply.values(name)), [['https://app.test'], ['Origin'], ['1'], []])
  assert.deepEqual([scene.results, await bound(), await scene.pods('x')], [['refused'], ['x'], ['pod-3']])
})

test('replies: an async onSend hook, and a header set on reply.raw, keep the pod\'s headers and open an event stream before its first event', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  let send = (): void => {}
  scene.app.addHook('onRequest', async (_request, reply) => { reply.raw.setHeader('x-raw', '1') })
  scene.app.addHook('onSend', async (_request, reply, payload) => {
    await new Promise(resolve => setTimeout(resolve, 50))
    reply.header('x-late', '1')
    return payload
  })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  for (const length of [{}, { 'content-length': '4' }]) {
    pod.answer = response => { response.writeHead(200, { 'x-pod': 'own', 'content-type': 'text/x-own', ...length }).end('body') }
    const reply = await scene.ask(toRequest('GET /d/x'))
    assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'body', true])
    assert.deepEqual(['x-pod', 'content-type', 'x-raw', 'x-late'].map(name => reply.values(name)), [['own'], ['text/x-own'], ['1'], ['1']])
  }
  pod.answer = response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    send = () => { response.end('data: one\n\n') }
  }
  const client = await scene.client()
  client.write(toRequest('GET /d/x'))
  await until(() => client.reader.bytes.includes('\r\n\r\n'), 'the head came', 5000)
  const head = client.reader.bytes.toString()
  for (const field of ['content-type: text/event-stream', 'x-raw: 1', 'x-late: 1']) assert.ok(head.includes(field), field)
  assert.doesNotMatch(head, /data:/)
  send()
  assert.equal((await client.readReply()).body.toString(), 'data: one\n\n')
})

test('replies: a pod that answers a status outside of HTTP with a long body is a 502 told once, and its connection is closed', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, socket => { socket.write(`HTTP/1.1 999 Odd\r\ncontent-length: 10000000\r\nx-pod: own\r\n\r\n${'x'.repeat(300_000)}`) })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'])
  await until(() => pod.sockets.size === 0, 'the pod\'s connection is closed', 5000)
  assert.deepEqual([scene.results, pod.requests.length], [['unreachable'], 1])
})

test('replies: the 502 for a status outside of HTTP has nothing of the pod, and what the application set', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, 'HTTP/1.1 999 Odd\r\ncontent-length: 2\r\nx-pod: own\r\nset-cookie: a=1\r\ncontent-encoding: gzip\r\naccess-control-allow-origin: *\r\n\r\nno')
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.addHook('onRequest', async (_request, reply) => { reply.header('access-control-allow-origin', 'https://app.test') })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(reply.statusCode, 502)
  readRefusal(reply)
  assert.deepEqual(['x-pod', 'set-cookie', 'content-encoding', 'access-control-allow-origin'].map(name => reply.values(name)), [[], [], [], ['https://app.test']])
})
