import assert from 'node:assert/strict'
import test from 'node:test'
import { proxyVia } from '../../src/index.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { assertNothingInner, deadAddress, readRefusal } from '../support/refusals.ts'
import { until } from '../support/store.ts'

// A rejection or an exception that nobody handles fails these tests: node:test reports it at the test it happened in.

test('G01: a throwing onResult costs neither answer nor binding in any helper, and is told in the log', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x', 'y'], answer: response => { response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"new"}') } })
  await pod.member.registerLock('lock', 'x')
  const onResult = (): never => { throw new Error('metrics are down') }
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))
  scene.app.get('/l/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult }))
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult }))
  scene.app.delete('/d/:id', scene.coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, expectedStatus: 201, onResult }))

  for (const line of ['GET /d/x', 'GET /l/lock', 'POST /d', 'DELETE /d/y']) {
    const reply = await scene.ask(toRequest(line))
    assert.deepEqual([reply.statusCode, reply.body.toString()], [201, '{"id":"new"}'], line)
  }
  assert.equal((await scene.ask(toRequest('GET /d/none'))).statusCode, 404)
  assert.deepEqual(await scene.pods('new'), ['pod-1'])
  assert.deepEqual(await scene.pods('y'), [])
  assert.equal(scene.logs.filter(({ code }) => code === 'PLT_COORDINATOR_CALLBACK_FAILED').length, 5)
})

test('G01: an async onResult that rejects costs nothing either', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1', { destinationIds: ['x'] })
  const onResult = (async () => { throw new Error('metrics are down') }) as unknown as () => void
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))

  assert.equal((await scene.ask(toRequest('GET /d/x'))).body.toString(), 'ok')
  assert.equal((await scene.ask(toRequest('GET /d/none'))).statusCode, 404)
  await until(() => scene.logs.filter(({ code }) => code === 'PLT_COORDINATOR_CALLBACK_FAILED').length === 2, 'both rejections are in the log')
})

test('G01: a throwing rewriteRequestHeaders is 500, no pod is asked, and the next request works', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id,
    onResult: scene.onResult,
    rewriteRequestHeaders: (request, headers) => {
      if (request.headers['x-bad'] !== undefined) throw new Error('at 127.0.0.1')
      return headers
    }
  }))

  const reply = await scene.ask(toRequest('GET /d/x', { 'x-bad': '1' }))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [500, 'PLT_COORDINATOR_CALLBACK_FAILED'])
  assert.equal(pod.requests.length, 0)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  assert.equal(scene.results.length, 2)
})

test('G01: a throwing rewriteHeaders is 500, not the end of the process, and the pod is not left waiting', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: response => { response.write('never ends') } })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({
    destinationFrom: r => r.params.id,
    onResult: scene.onResult,
    rewriteHeaders: () => { throw new Error('at 127.0.0.1') }
  }))

  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [500, 'PLT_COORDINATOR_CALLBACK_FAILED'])
  await until(() => pod.requests[0]?.isCancelled, 'the request at the pod is cancelled')
  assert.equal(scene.results.length, 1)
})

test('G01: a throwing onError is 5xx, not the end of the process', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  await scene.register('pod-1', deadAddress, ['x'])
  const onError = (): never => { throw new Error('at 127.0.0.1') }
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onError, onResult: scene.onResult }))
  const onErrorLater = (async () => { throw new Error('at 127.0.0.1') }) as unknown as () => void
  scene.app.get('/later/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onError: onErrorLater, onResult: scene.onResult }))

  for (const path of ['/d/x', '/later/x']) {
    const reply = await scene.ask(toRequest(`GET ${path}`))
    assert.ok(reply.statusCode >= 500, `${path} answers ${reply.statusCode}`)
    assertNothingInner(reply.body.toString())
  }
  assert.deepEqual(scene.results, ['unreachable', 'unreachable'])
})

test('G01: a throwing onUnreachable of proxyVia costs nothing', { timeout: 20_000 }, async t => {
  const scene = await setHttpScene(t)
  scene.app.get('/d', proxyVia(() => ({ memberId: 'pod-1', address: deadAddress }), {
    onUnreachable: () => { throw new Error('at 127.0.0.1') },
    onResult: scene.onResult
  }))

  const reply = await scene.ask(toRequest('GET /d'))
  readRefusal(reply)
  assert.ok(reply.statusCode >= 500)
  assert.equal(scene.results.length, 1)
})
