import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress, readRefusal } from '../support/refusals.ts'

const limit = { timeout: 60_000 }

test('destinationFrom and lockFrom: they may be async, and a number is used as text', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x', '42', '0'] })
  await pod.member.registerLock('7', 'x')
  scene.app.get('/later/:id', scene.coordinator.lookupAndProxy({ destinationFrom: async r => await Promise.resolve(r.params.id) }))
  scene.app.get('/number/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => Number(r.params.id) }))
  scene.app.get('/lock/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: async r => Number(r.params.id) }))
  for (const path of ['/later/x', '/number/42', '/number/0', '/lock/7']) {
    assert.equal((await scene.ask(toRequest(`GET ${path}`))).statusCode, 200, path)
  }
  assert.equal(pod.requests.length, 4)
})

test('destinationFrom and lockFrom: nothing, an empty text, an object, NaN or a lone surrogate is 400, and no pod is asked', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['[object Object]', 'undefined', 'null', 'NaN', 'true', 'x'] })
  const given: unknown[] = [undefined, null, '', {}, ['x'], NaN, Infinity, true, 1n, Symbol('x'), () => 'x', '\ud800', 'x'.repeat(16 * 1024 + 1)]
  const from = (r: { params: Record<string, string> }): string => given[Number(r.params.at)] as string
  const later = async (r: { params: Record<string, string> }): Promise<string> => from(r)
  const { onResult, coordinator, app } = scene
  app.get('/d/:at', coordinator.lookupAndProxy({ destinationFrom: from, claimOnMiss: true, reassignOrphans: true, onResult }))
  app.get('/later/:at', coordinator.lookupAndProxy({ destinationFrom: later, claimOnMiss: true, onResult }))
  app.get('/l/:at', coordinator.lookupLockAndProxy({ lockFrom: from, onResult }))
  app.get('/delete/:at', coordinator.lookupAndDeregister({ destinationFrom: from, onResult }))
  for (const at of given.keys()) {
    for (const path of ['/d', '/later', '/l', '/delete']) {
      const reply = await scene.ask(toRequest(`GET ${path}/${at}`))
      const { statusCode, code, error } = readRefusal(reply)
      assert.deepEqual([statusCode, code, error], [400, 'PLT_COORDINATOR_INVALID_ID', 'Bad Request'], `${path} ${String(given[at]).slice(0, 20)}`)
    }
  }
  assert.equal(pod.requests.length, 0)
  assert.equal(scene.results.length, given.length * 4)
  assert.ok(scene.results.every(result => result === 'bad_request'))
})

test('destinationFrom and lockFrom: throwing, or rejecting, is 500 without the text of the error, and no pod is asked', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const destinationFrom = (): never => { throw new Error('http://127.0.0.1/secret') }
  const { onResult, coordinator, app } = scene
  app.get('/d', coordinator.lookupAndProxy({ destinationFrom, onResult }))
  app.get('/later', coordinator.lookupAndProxy({ destinationFrom: async () => destinationFrom(), onResult }))
  app.get('/l', coordinator.lookupLockAndProxy({ lockFrom: destinationFrom, onResult }))
  app.get('/delete', coordinator.lookupAndDeregister({ destinationFrom, onResult }))
  app.get('/status', coordinator.lookupAndProxy({ destinationFrom: () => { throw Object.assign(new Error('secret'), { statusCode: 302 }) }, onResult }))
  for (const path of ['/d', '/later', '/l', '/delete', '/status']) {
    const reply = await scene.ask(toRequest(`GET ${path}`))
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [500, 'PLT_COORDINATOR_CALLBACK_FAILED'], path)
    assert.doesNotMatch(reply.body.toString(), /secret/)
  }
  assert.equal(pod.requests.length, 0)
  assert.equal(scene.results.length, 5)
})

test('G35: rewriteRequestHeaders comes after the helper\'s duty: it sees neither hop headers nor x-coordinator, and may change forwarded ones', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const seen: Record<string, unknown>[] = []
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id,
    rewriteRequestHeaders: (request, headers) => {
      seen.push({ ...headers, url: request.url })
      return { ...headers, 'x-forwarded-for': '10.0.0.1', 'x-added': 'yes', 'x-removed': undefined }
    }
  }))
  const reply = await scene.ask(toRequest('POST /d/x', {
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    te: 'gzip',
    'proxy-authorization': 'secret',
    'x-coordinator-epoch': '9',
    'x-removed': 'gone',
    'x-kept': 'kept',
    'x-forwarded-for': '6.6.6.6'
  }, 'body'))
  assert.equal(reply.statusCode, 200)
  for (const name of ['connection', 'x-hop', 'keep-alive', 'te', 'proxy-authorization', 'x-coordinator-epoch']) assert.equal(seen[0]?.[name], undefined, `${name} was seen`)
  assert.deepEqual([seen[0]?.['x-forwarded-for'], seen[0]?.['x-forwarded-proto'], seen[0]?.['x-kept'], seen[0]?.url], ['127.0.0.1', 'http', 'kept', '/d/x'])
  const [request] = pod.requests
  assert.deepEqual([request?.values('x-forwarded-for'), request?.values('x-added'), request?.values('x-kept'), request?.values('x-removed')], [['10.0.0.1'], ['yes'], ['kept'], []])
  assert.deepEqual([request?.body.toString(), request?.values('content-length')], ['body', ['4']])
})

test('G35: rewriteRequestHeaders cannot break the framing or the host of what is sent', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id,
    rewriteRequestHeaders: () => ({ 'content-length': '1', 'x-only': 'this' })
  }))
  assert.equal((await scene.ask(toRequest('POST /d/x', {}, 'body'))).statusCode, 200)
  assert.deepEqual([pod.requests[0]?.body.toString(), pod.requests[0]?.values('content-length'), pod.requests[0]?.values('x-only')], ['body', ['4'], ['this']])
  assert.deepEqual(pod.requests[0]?.values('host'), [`127.0.0.1:${pod.port}`])
})

test('G35: rewriteHeaders comes after the helper\'s duty and changes what the client gets, in each helper', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', {
    destinationIds: ['x', 'y'],
    answer: response => {
      response.writeHead(201, { connection: 'x-hop', 'x-hop': '1', 'keep-alive': 'timeout=5', 'x-pod': 'a', 'set-cookie': ['a=1', 'b=2'], 'content-type': 'application/json' }).end('{"id":"new"}')
    }
  })
  await pod.member.registerLock('lock', 'x')
  const seen: Record<string, unknown>[] = []
  const rewriteHeaders = (headers: Record<string, unknown>) => {
    seen.push({ ...headers })
    return { ...headers, 'x-pod': 'b', 'x-added': 'yes' }
  }
  const { app, coordinator } = scene
  app.get('/d/:id', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, rewriteHeaders }))
  app.get('/l/:id', coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, rewriteHeaders }))
  app.get('/create', coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, rewriteHeaders }))
  app.get('/delete/:id', coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, expectedStatus: 201, rewriteHeaders }))
  for (const path of ['/d/x', '/l/lock', '/create', '/delete/y']) {
    const reply = await scene.ask(toRequest(`GET ${path}`))
    assert.deepEqual([reply.values('x-pod'), reply.values('x-added'), reply.values('set-cookie'), reply.values('x-hop')], [['b'], ['yes'], ['a=1', 'b=2'], []], path)
  }
  assert.equal(seen.length, 4)
  for (const headers of seen) assert.deepEqual([headers.connection, headers['x-hop'], headers['keep-alive']], [undefined, undefined, undefined])
})

test('G35: onError answers in the helper\'s place, is told status and code, and the result is told all the same', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.register('dead', deadAddress, ['x'])
  await scene.pod('slow', { destinationIds: ['slow'], answer: () => {} })
  const failures: { statusCode: number, code: string, error: Error }[] = []
  const { app, coordinator, onResult } = scene
  const onError = (reply: { code (status: number): { send (body: unknown): unknown } }, failure: { statusCode: number, code: string, error: Error }): void => {
    failures.push(failure)
    reply.code(599).send({ own: true })
  }
  app.get('/d/:id', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, requestTimeout: 200, onError, onResult }))
  app.post('/create', coordinator.pickAndRegister({ registerIdFrom: () => 'new', onError, onResult, requestTimeout: 200 }))
  for (const path of ['/d/x', '/d/slow']) {
    const reply = await scene.ask(toRequest(`GET ${path}`))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [599, '{"own":true}'])
  }
  assert.deepEqual(failures.map(({ statusCode, code }) => [statusCode, code]), [[502, 'PLT_COORDINATOR_POD_UNREACHABLE'], [504, 'PLT_COORDINATOR_POD_TIMEOUT']])
  assert.ok(failures.every(({ error }) => error instanceof Error))
  assert.equal((await scene.ask(toRequest('GET /d/none'))).statusCode, 404, 'what no pod was asked for is not its affair')
  assert.deepEqual(scene.results, ['unreachable', 'timeout', 'not_found'])
})
