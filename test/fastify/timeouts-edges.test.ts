import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpSceneOptions } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

const slack = { timeout: 60_000 }

async function setScene (t: test.TestContext, options: { requestTimeout?: number, idleTimeout?: number }, scene: HttpSceneOptions = {}) {
  const http = await setHttpScene(t, scene)
  const pod = await http.pod('pod-1', { destinationIds: ['x'], answer: () => {} })
  const { onResult } = http
  await pod.member.registerLock('lock', 'x')
  http.app.all('/d/:id', http.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult, ...options }))
  http.app.all('/l/:id', http.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult, ...options }))
  http.app.all('/delete/:id', http.coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, onResult, ...options }))
  http.app.all('/create', http.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult, ...options }))
  return { scene: http, pod }
}

test('requestTimeout: a pod that hangs twice, cut in between, does not get it twice', slack, async t => {
  const scene = await setHttpScene(t)
  let count = 0
  const pod = await startRawPod(t, socket => {
    // The first is cut late, the second hangs.
    if (++count === 1) setTimeout(() => socket.destroy(), 700)
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, requestTimeout: 800 }))
  const before = performance.now()
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 504)
  const tookMs = performance.now() - before
  assert.ok(tookMs < 1300, `took ${tookMs} ms, 1050 were allowed`)
})

test('idleTimeout: a reply that stops after its headers is cut, not turned into a 500', slack, async t => {
  const { scene, pod } = await setScene(t, { idleTimeout: 300 })
  pod.answer = response => { response.writeHead(200, { 'content-length': '5' }).flushHeaders() }
  const client = await scene.client()
  client.write(toRequest('GET /d/x'))
  const reply = await client.readReply().catch(() => undefined)
  assert.notEqual(reply?.statusCode, 500)
  assert.ok(reply === undefined || !reply.isComplete || reply.statusCode === 504)
  await until(() => pod.requests[0]?.isCancelled, 'the request is cancelled at the pod', 5000)
})

test('idleTimeout: it ends a create whose pod stops within its reply', slack, async t => {
  const { scene, pod } = await setScene(t, { idleTimeout: 300 })
  pod.answer = response => { response.writeHead(201, { 'content-type': 'application/json' }).write('{"id":') }
  const client = await scene.client()
  client.write(toRequest('POST /create', {}, '{}'))
  await until(() => pod.requests[0]?.isCancelled, 'the request is cancelled at the pod', 5000)
  await until(() => scene.results.length === 1, 'the result is told', 5000)
  const reply = await client.readReply().catch(() => undefined)
  assert.ok(reply === undefined || reply.statusCode >= 502, `answered ${reply?.statusCode}`)
  assert.notEqual(scene.results[0], 'spawned')
})
