import assert from 'node:assert/strict'
import test from 'node:test'
import { proxyVia } from '../../src/index.ts'
import type { ProxyTarget } from '../../src/index.ts'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { askForRefusal, deadAddress, readRefusal, refusalLines } from '../support/refusals.ts'

const limit = { timeout: 60_000 }

test('proxyVia: it goes where resolve says, async or not, with path, query, body and reply as they are', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startPod(t, (response, request) => { response.writeHead(207, { 'x-pod': 'own' }).end(request.body) })
  const target: ProxyTarget = { memberId: 'pod-1', address: `${pod.address}/base/` }
  scene.app.all('/now/*', proxyVia(() => target, { onResult: scene.onResult }))
  scene.app.all<{ Params: { '*': string } }>('/later/*', proxyVia<{ Params: { '*': string } }>(async request => ({ ...target, destinationId: request.params['*'], result: 'orphan_reassigned' }), { onResult: scene.onResult }))
  for (const path of ['/now/a%2Fb?q=1', '/later/a?']) {
    const reply = await scene.ask(toRequest(`PUT ${path}`, { 'content-type': 'application/json' }, '{ "a": 1.0 }'))
    assert.deepEqual([reply.statusCode, reply.values('x-pod'), reply.body.toString()], [207, ['own'], '{ "a": 1.0 }'])
  }
  assert.deepEqual(pod.requests.map(({ url }) => url), ['/base/now/a%2Fb?q=1', '/base/later/a?'])
  assert.deepEqual(scene.results, ['hit', 'orphan_reassigned'])
})

test('proxyVia: null is noPodStatus, and its own errors are answered by their code', limit, async t => {
  const scene = await setHttpScene(t)
  const registry = scene.registry()
  await registry.close()
  const { app, onResult } = scene
  app.get('/null', proxyVia(() => null, { onResult }))
  app.get('/null/503', proxyVia(async () => null, { onResult, noPodStatus: 503, notFoundMessage: 'No pod' }))
  app.get('/throws', proxyVia(() => { throw new Error('http://127.0.0.1/secret') }, { onResult }))
  app.get('/bad-id', proxyVia(async () => { await scene.coordinator.registry.resolveDestination(''); return null }, { onResult }))
  app.get('/closed', proxyVia(async () => { await registry.resolveDestination('x'); return null }, { onResult }))
  assert.equal((await askForRefusal(scene, '/null')).statusCode, 404)
  assert.deepEqual(await askForRefusal(scene, '/null/503').then(({ statusCode, error, retryAfter }) => [statusCode, error, retryAfter]), [503, 'No pod', '1'])
  assert.equal((await askForRefusal(scene, '/throws')).statusCode, 500)
  assert.equal((await askForRefusal(scene, '/bad-id')).statusCode, 400)
  assert.ok((await askForRefusal(scene, '/closed')).statusCode >= 500)
  assert.equal(scene.results.length, 5)
})

test('proxyVia: a pod that refuses is told to onUnreachable, resolve is asked once more, and another pod gets the request', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startPod(t)
  const dead: ProxyTarget = { memberId: 'dead', address: deadAddress, destinationId: 'x' }
  const told: ProxyTarget[] = []
  let asked = 0
  scene.app.post('/d', proxyVia(() => ++asked === 1 ? dead : { memberId: 'pod-1', address: pod.address }, { onUnreachable: target => { told.push(target) }, onResult: scene.onResult }))
  assert.equal((await scene.ask(toRequest('POST /d', {}, 'body'))).statusCode, 200)
  assert.deepEqual([asked, told, pod.requests.map(({ body }) => body.toString())], [2, [dead], ['body']])

  assert.deepEqual(scene.results, ['hit'])
  assert.deepEqual(refusalLines(scene), [], 'what ended well is no refusal')
})

test('proxyVia: the same pod again, or nothing any more, is 502', limit, async t => {
  const scene = await setHttpScene(t)
  const dead: ProxyTarget = { memberId: 'dead', address: deadAddress }
  let asked = 0
  scene.app.get('/same', proxyVia(() => ({ ...dead }), { onResult: scene.onResult }))
  scene.app.get('/gone', proxyVia(() => ++asked === 1 ? dead : null, { onResult: scene.onResult }))
  for (const path of ['/same', '/gone']) assert.equal((await askForRefusal(scene, path)).statusCode, 502)
  assert.deepEqual(scene.results, ['unreachable', 'unreachable'])
})

test('proxyVia: without reply-from on the application it is an error that says what to do', limit, async t => {
  const scene = await setHttpScene(t, { plugin: false })
  scene.app.get('/d', proxyVia(() => ({ memberId: 'pod-1', address: deadAddress })))
  const reply = await scene.ask(toRequest('GET /d'))
  assert.equal(readRefusal(reply).statusCode, 500)
  assert.match(JSON.stringify(scene.logs), /@fastify\/reply-from/)
})
