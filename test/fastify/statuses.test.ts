import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import type { Pod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'

async function setProxy (t: TestContext): Promise<{ scene: HttpScene, pod: Pod }> {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  await addRoute(scene)
  return { scene, pod }
}

async function addRoute (scene: HttpScene): Promise<void> {
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
}

for (const status of [200, 201, 202, 203, 206, 226, 299, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 409, 410, 412, 416, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 599]) {
  test(`statuses: ${status} is passed on once, with its headers and body (G03, G20)`, async t => {
    const { scene, pod } = await setProxy(t)
    const headers = { 'content-type': 'application/problem+json', location: 'http://other.test/else?a=1', 'retry-after': '0', 'www-authenticate': 'Basic', etag: '"1"' }
    pod.answer = response => { response.writeHead(status, headers).end('{ "own": 1.0 }') }
    for (const method of ['GET', 'POST']) {
      const reply = await scene.ask(toRequest(`${method} /d/x`))
      assert.deepEqual([reply.statusCode, reply.body.toString()], [status, '{ "own": 1.0 }'])
      for (const [name, value] of Object.entries(headers)) assert.deepEqual(reply.values(name), [value], name)
    }
    assert.equal(pod.requests.length, 2, 'each was asked once')
    assert.deepEqual(scene.results, ['hit', 'hit'])
  })
}

test('statuses: a 503 with Retry-After to GET, HEAD and OPTIONS is passed on after one request each (G20)', async t => {
  const { scene, pod } = await setProxy(t)
  pod.answer = response => { response.writeHead(503, { 'retry-after': '1', 'content-length': '4' }).end('busy') }
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    const reply = await scene.ask(toRequest(`${method} /d/x`))
    assert.deepEqual([reply.statusCode, reply.values('retry-after'), reply.body.toString()], [503, ['1'], method === 'HEAD' ? '' : 'busy'])
  }
  assert.deepEqual(pod.requests.map(({ method }) => method), ['GET', 'HEAD', 'OPTIONS'])
})

test('HEAD: the length, type and encoding of the pod reach the client, and the connection can be used again (G03)', async t => {
  const { scene, pod } = await setProxy(t)
  const client = await scene.client()
  for (const headers of [
    { 'content-length': '12345', 'content-type': 'image/png', 'content-encoding': 'gzip', etag: '"1"' },
    { 'content-length': '0' },
    { 'content-type': 'text/plain' }
  ] as Record<string, string>[]) {
    pod.answer = response => { response.writeHead(200, headers).end() }
    const reply = await client.ask(toRequest('HEAD /d/x'))
    assert.equal(reply.statusCode, 200)
    for (const name of ['content-length', 'content-type', 'content-encoding', 'etag']) {
      assert.deepEqual(reply.values(name), headers[name] === undefined ? [] : [headers[name]], name)
    }
  }
  pod.answer = response => { response.end('after') }
  assert.equal((await client.ask(toRequest('GET /d/x'))).body.toString(), 'after', 'no byte of a body came between')
  assert.deepEqual(pod.requests.map(({ method }) => method), ['HEAD', 'HEAD', 'HEAD', 'GET'])
})

test('204 and 304: bare, without length and type that the pod did not send, and no warning in the log (G03, G43)', async t => {
  const { scene, pod } = await setProxy(t)
  const client = await scene.client()
  for (const [status, headers] of [[204, {}], [204, { 'x-a': '1' }], [304, { etag: '"1"' }], [304, { etag: '"1"', 'content-length': '50', 'content-type': 'text/css' }]] as [number, Record<string, string>][]) {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
      pod.next.push(response => { response.writeHead(status, headers).end() })
      const reply = await client.ask(toRequest(`${method} /d/x`))
      assert.deepEqual([reply.statusCode, reply.body.length], [status, 0])
      for (const name of ['x-a', 'etag', 'content-type', 'transfer-encoding']) assert.deepEqual(reply.values(name), headers[name] === undefined ? [] : [headers[name]], `${status} ${method} ${name}`)
      if (status === 204) assert.deepEqual(reply.values('content-length'), [])
      else assert.deepEqual(reply.values('content-length'), headers['content-length'] === undefined ? [] : ['50'], `${status} ${method}`)
    }
  }
  assert.equal((await client.ask(toRequest('GET /d/x'))).body.toString(), 'ok')
  assert.deepEqual(scene.logs.filter(({ level }) => level >= 40), [])
  assert.deepEqual(new Set(scene.logs.filter(({ reqId }) => reqId !== undefined).map(({ msg }) => msg)), new Set(['incoming request', 'request completed']), 'nor lines of reply-from')
})

test('205 and an empty 200: no type is added', async t => {
  const { scene, pod } = await setProxy(t)
  for (const status of [205, 200, 404]) {
    pod.next.push(response => { response.writeHead(status, { 'content-length': '0' }).end() })
    const reply = await scene.ask(toRequest('POST /d/x'))
    assert.deepEqual([reply.statusCode, reply.body.length, reply.values('content-type'), reply.values('content-length')], [status, 0, [], ['0']])
  }
})

test('redirects are passed on and not followed (G03)', async t => {
  const { scene, pod } = await setProxy(t)
  const other = await scene.pod('pod-2')
  for (const status of [301, 302, 303, 307, 308]) {
    pod.next.push(response => { response.writeHead(status, { location: `${other.address}/else` }).end() })
    const reply = await scene.ask(toRequest('GET /d/x'))
    assert.deepEqual([reply.statusCode, reply.values('location')], [status, [`${other.address}/else`]])
  }
  assert.equal(other.requests.length, 0)
})

test('methods: OPTIONS and those Fastify knows beside the common ones reach the pod (G03)', async t => {
  const scene = await setHttpScene(t)
  for (const method of ['PROPFIND', 'REPORT', 'MKCOL']) scene.app.addHttpMethod(method, { hasBody: true })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.writeHead(200, { allow: 'GET' }).end() } })
  await addRoute(scene)
  const methods = ['GET', 'HEAD', 'TRACE', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'REPORT', 'MKCOL', 'QUERY']
  for (const method of methods) {
    const hasBody = !['GET', 'HEAD', 'TRACE'].includes(method)
    const reply = await scene.ask(toRequest(`${method} /d/x`, hasBody ? { 'content-type': 'text/xml' } : {}, hasBody ? '<a b="ä"/>' : undefined))
    assert.deepEqual([reply.statusCode, reply.values('allow')], [200, ['GET']], method)
    assert.equal(pod.requests.at(-1)?.body.toString(), hasBody ? '<a b="ä"/>' : '', method)
  }
  assert.deepEqual(pod.requests.map(({ method }) => method), methods)
})

test('informational replies: 102 and 103 come before the answer, with the links of the 103', async t => {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, [
    'HTTP/1.1 102 Processing\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload; as=style\r\nLink: </b.js>; rel=preload; as=script\r\nX-Hint: 1\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: 1\r\n\r\nok'
  ].join(''))
  await scene.register('pod-1', pod.address, ['x'])
  await addRoute(scene)
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.values('x-own')], [200, 'ok', ['1']])
  assert.deepEqual(reply.information.map(({ statusCode }) => statusCode), [102, 103])
  const links = reply.information[1]?.rawHeaders.filter((_, at, all) => at % 2 === 1 && all[at - 1]?.toLowerCase() === 'link').join(', ')
  assert.equal(links, '</a.css>; rel=preload; as=style, </b.js>; rel=preload; as=script')
})

test('informational replies: a hint the client\'s side cannot pass on costs neither the answer nor the process', async t => {
  const scene = await setHttpScene(t)
  for (const [id, hint] of [['odd', 'Link: nonsense\r\n'], ['none', ''], ['latin', 'Link: </\xe4>; rel=preload\r\nX-A: \xe4\r\n']] as const) {
    const pod = await startRawPod(t, `HTTP/1.1 103 Early Hints\r\n${hint}\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
    await scene.register(`pod-${id}`, pod.address, [id])
  }
  await addRoute(scene)
  for (const id of ['odd', 'none', 'latin']) {
    const reply = await scene.ask(toRequest(`GET /d/${id}`))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [200, 'ok'], id)
  }
})
