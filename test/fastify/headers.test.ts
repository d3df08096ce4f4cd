import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import type { Pod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

async function setProxy (t: TestContext): Promise<{ scene: HttpScene, pod: Pod }> {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  addRoute(scene)
  return { scene, pod }
}

function addRoute (scene: HttpScene): void {
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
}

test('request headers: those that are end to end reach the pod as they came', async t => {
  const { scene, pod } = await setProxy(t)
  const headers = {
    accept: 'text/*;q=0.3, */*',
    'accept-encoding': 'br, gzip',
    authorization: 'Bearer a.b.c==',
    cookie: 'a=1; b="2"',
    range: 'bytes=0-1',
    'if-none-match': '"1", W/"2"',
    'user-agent': 'test/1',
    referer: 'http://app.test/d',
    origin: 'http://app.test',
    'x-own': 'a, b',
    'x-empty': '',
    'x-latin': '\xe4\xff',
    traceparent: '00-1-2-01',
    via: '1.0 other',
    forwarded: 'for=1.2.3.4',
    'content-md5': 'x'
  }
  assert.equal((await scene.ask(toRequest('POST /d/x', headers, 'abc'))).statusCode, 200)
  for (const [name, value] of Object.entries(headers)) assert.deepEqual(pod.requests[0]?.values(name), [value], name)
  assert.deepEqual(pod.requests[0]?.values('host'), [pod.address.slice('http://'.length)])
})

test('request headers: repeated ones keep all their values', async t => {
  const { scene, pod } = await setProxy(t)
  assert.equal((await scene.ask(toRequest('GET /d/x', { 'x-many': ['1', '2', '3'], cookie: ['a=1', 'b=2'] }))).statusCode, 200)
  assert.equal(pod.requests[0]?.headers['x-many'], '1, 2, 3')
  assert.equal(pod.requests[0]?.headers.cookie, 'a=1; b=2')
})

test('request headers: hop-by-hop ones stop, and those named in Connection (G02)', async t => {
  const { scene, pod } = await setProxy(t)
  const reply = await scene.ask(toRequest('POST /d/x', {
    connection: ['X-Hop, keep-alive ,  x-other', 'X-Third'],
    'x-hop': '1',
    'X-Other': '1',
    'x-third': '1',
    'keep-alive': 'timeout=5',
    'proxy-connection': 'keep-alive',
    'proxy-authorization': 'Basic x',
    'proxy-authenticate': 'Basic',
    te: 'gzip',
    trailer: 'x-sum',
    'http2-settings': 'AAMAAABk',
    'x-stays': '1'
  }, 'abc'))
  assert.equal(reply.statusCode, 200)
  for (const name of ['x-hop', 'x-other', 'x-third', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer', 'upgrade', 'http2-settings']) {
    assert.deepEqual(pod.requests[0]?.values(name), [], name)
  }
  assert.deepEqual(pod.requests[0]?.values('x-stays'), ['1'])
  assert.equal(pod.requests[0]?.body.toString(), 'abc')
})

test('request headers: what Connection names cannot take away what the proxy sets, nor the length, type or host', async t => {
  const { scene, pod } = await setProxy(t)
  const reply = await scene.ask(toRequest('POST /d/x', { connection: 'x-forwarded-for, x-forwarded-proto, host, content-length', 'content-type': 'text/x' }, 'abc'))
  assert.equal(reply.statusCode, 200)
  const [request] = pod.requests
  assert.deepEqual([request?.values('x-forwarded-for'), request?.values('x-forwarded-proto'), request?.values('host').length], [['127.0.0.1'], ['http'], 1])
  assert.equal(request?.body.toString(), 'abc')
})

test('request headers: x-coordinator-* from outside never reach a pod', async t => {
  const { scene, pod } = await setProxy(t)
  assert.equal((await scene.ask(toRequest('GET /d/x', { 'x-coordinator-member': 'pod-9', 'X-Coordinator-Anything': '1', 'x-coordinatorish': '1', 'x-coordinator': '1' }))).statusCode, 200)
  assert.deepEqual(pod.requests[0]?.rawHeaders.filter(name => /^x-coordinator-/i.test(name)), [])
  assert.deepEqual([pod.requests[0]?.values('x-coordinatorish'), pod.requests[0]?.values('x-coordinator')], [['1'], ['1']])
})

test('reply headers: hop-by-hop ones stop, and those named in Connection; two Set-Cookie stay two (G02)', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, [
    'HTTP/1.1 200 Fine', 'Connection: X-Hop, keep-alive', 'X-Hop: 1', 'Keep-Alive: timeout=1, max=3', 'Proxy-Authenticate: Basic', 'Proxy-Connection: x', 'Upgrade: h2c',
    'Set-Cookie: a=1; Path=/', 'Set-Cookie: b=2', 'Link: </a>', 'Link: </b>', 'WWW-Authenticate: Basic', 'WWW-Authenticate: Bearer', 'Vary: a', 'X-Own: \xe4', 'X-Empty: ', 'Server: own/1',
    'Date: Thu, 01 Jan 1970 00:00:00 GMT', 'Content-Length: 2', '', 'ok'
  ].join('\r\n'))
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(reply.body.toString(), 'ok')
  for (const name of ['x-hop', 'proxy-authenticate', 'proxy-connection', 'upgrade']) assert.deepEqual(reply.values(name), [], name)
  assert.doesNotMatch(reply.values('keep-alive').join(), /max=3/)
  assert.doesNotMatch(reply.values('connection').join(), /x-hop/i)
  assert.deepEqual(reply.values('set-cookie'), ['a=1; Path=/', 'b=2'])
  assert.equal(reply.values('link').join(', '), '</a>, </b>')
  assert.equal(reply.values('www-authenticate').join(', '), 'Basic, Bearer')
  assert.deepEqual([reply.values('vary'), reply.values('x-own'), reply.values('x-empty'), reply.values('server')], [['a'], ['\xe4'], [''], ['own/1']])
  assert.deepEqual(reply.values('date'), ['Thu, 01 Jan 1970 00:00:00 GMT'], 'the date of the pod, once')
})

test('reply headers: a pod that closes its connection does not close the client\'s', async t => {
  const { scene, pod } = await setProxy(t)
  pod.answer = response => { response.writeHead(200, { connection: 'close' }).end('ok') }
  const client = await scene.client()
  for (const each of [1, 2, 3]) assert.equal((await client.ask(toRequest('GET /d/x'))).statusCode, 200, String(each))
  assert.equal(pod.connectionCount, 3)
})

test('Expect: 100-continue is said before the body comes, and the pod gets the body and no Expect', async t => {
  for (const length of [5, 100_000]) {
    const { scene, pod } = await setProxy(t)
    const client = await scene.client()
    const body = Buffer.alloc(length, 'b')
    client.write(toRequest('PUT /d/x', { expect: '100-continue', 'content-length': String(length) }))
    await until(() => client.reader.bytes.includes('\r\n\r\n'), 'the interim reply came')
    assert.match(client.reader.bytes.toString(), /^HTTP\/1\.1 100 Continue\r\n/)
    client.write(body)
    const reply = await client.readReply()
    assert.deepEqual([reply.statusCode, reply.information.map(({ statusCode }) => statusCode)], [200, [100]])
    assert.ok(pod.requests[0]?.body.equals(body))
    assert.deepEqual(pod.requests[0]?.values('expect'), [])
  }
})

test('trailers: those of a reply in chunks reach the client', async t => {
  const { scene, pod } = await setProxy(t)
  pod.answer = response => {
    response.writeHead(200, { trailer: 'X-Sum, X-State', 'transfer-encoding': 'chunked', 'content-type': 'text/plain' })
    response.write('abc')
    response.addTrailers({ 'X-Sum': '294', 'X-State': 'done' })
    response.end()
  }
  const client = await scene.client()
  const reply = await client.ask(toRequest('GET /d/x', { te: 'trailers' }))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'abc', true])
  assert.deepEqual(reply.rawTrailers.map(each => each.toLowerCase()), ['x-sum', '294', 'x-state', 'done'])
  assert.deepEqual(pod.requests[0]?.values('te'), ['trailers'])
  assert.equal((await client.ask(toRequest('HEAD /d/x'))).statusCode, 200, 'the connection can be used again')
})

test('trailers: a forbidden name, or one that is promised and never comes, costs nothing', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length, x-never, x-sum\r\n\r\n'), toChunks(['abc'], { 'X-Sum': '294' })]))
  await scene.register('pod-1', pod.address, ['x'])
  addRoute(scene)
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'abc', true])
  assert.equal(reply.rawTrailers.map(each => each.toLowerCase()).join().includes('x-sum,294'), true)
})
