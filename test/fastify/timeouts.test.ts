import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpSceneOptions } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { readRefusal } from '../support/refusals.ts'
import { until } from '../support/store.ts'

const slack = { timeout: 60_000 }
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

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

test('G19: requestTimeout 500 answers 504 in time in each helper, and cancels the request at the pod', slack, async t => {
  const { scene, pod } = await setScene(t, { requestTimeout: 500 })
  for (const [at, line] of ['GET /d/x', 'POST /l/lock', 'DELETE /delete/x', 'POST /create'].entries()) {
    const before = performance.now()
    const reply = await scene.ask(toRequest(line, {}, line.startsWith('POST') ? '{}' : undefined))
    const tookMs = performance.now() - before
    assert.deepEqual([reply.statusCode, readRefusal(reply).code, readRefusal(reply).error], [504, 'PLT_COORDINATOR_POD_TIMEOUT', 'Gateway Timeout'], line)
    // The issue asks for 500 + max(25 %, 250 ms); twice that slack is for a loaded machine.
    assert.ok(tookMs >= 480 && tookMs < 1000, `${line} took ${tookMs} ms`)
    await until(() => pod.requests[at]?.isCancelled, 'the request is cancelled at the pod', 5000)
  }
  assert.equal(pod.requests.length, 4, 'nothing is sent again')
  assert.deepEqual(scene.results, ['timeout', 'timeout', 'timeout', 'timeout'])
  assert.deepEqual(await scene.pods('x'), ['pod-1'])
})

test('requestTimeout: the plugin gives it to every helper that has none of its own, and a route may have another', slack, async t => {
  const scene = await setHttpScene(t, { plugin: { requestTimeout: 300 } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: () => {} })
  scene.app.get('/plugin/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  scene.app.get('/route/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, requestTimeout: 60_000 }))

  assert.equal((await scene.ask(toRequest('GET /plugin/x'))).statusCode, 504)
  const client = await scene.client()
  client.write(toRequest('GET /route/x'))
  await until(() => pod.requests.length === 2, 'the pod has it')
  await pause(900)
  assert.equal(client.reader.bytes.length, 0, 'the longer time of the route holds')
})

test('requestTimeout: it counts from the last byte of the request, so a slow upload that progresses is not cut', slack, async t => {
  const { scene, pod } = await setScene(t, { requestTimeout: 500 })
  pod.answer = (response, request) => { response.end(String(request.body.length)) }
  for (const headers of [{ 'content-length': '5' }, { 'content-length': '70005' }]) {
    const client = await scene.client()
    client.write(toRequest('PUT /d/x', headers, Buffer.alloc(Number(headers['content-length']) - 5)))
    for (const byte of 'abcde') {
      await pause(250)
      client.write(byte)
    }
    const reply = await client.readReply()
    assert.deepEqual([reply.statusCode, reply.body.toString()], [200, headers['content-length']])
  }
  const client = await scene.client()
  client.write(toRequest('PUT /d/x', { 'transfer-encoding': 'chunked' }))
  for (const byte of 'abcde') {
    client.write(`1\r\n${byte}\r\n`)
    await pause(250)
  }
  client.write('0\r\n\r\n')
  assert.equal((await client.readReply()).body.toString(), '5')
})

test('requestTimeout: it counts from the last byte of a streamed upload too', slack, async t => {
  const { scene } = await setScene(t, { requestTimeout: 400 })
  const client = await scene.client()
  client.write(toRequest('PUT /d/x', { 'content-length': '100000' }, Buffer.alloc(99_999)))
  await pause(600)
  assert.equal(client.reader.bytes.length, 0)
  const before = performance.now()
  const reply = await client.ask('x')
  assert.equal(reply.statusCode, 504)
  assert.ok(performance.now() - before >= 380)
})

test('requestTimeout: it does not cut a reply that began', slack, async t => {
  const { scene, pod } = await setScene(t, { requestTimeout: 300 })
  pod.answer = response => {
    response.write('a')
    setTimeout(() => response.end('b'), 900)
  }
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'ab', true])
})

test('idleTimeout: a reply that pauses is cut and the pod is told; without it, it goes on', slack, async t => {
  const { scene, pod } = await setScene(t, { idleTimeout: 400 })
  scene.app.get('/patient/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  pod.answer = response => {
    response.write('a')
    setTimeout(() => response.end('b'), 1500)
  }
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'a', false])
  await until(() => pod.requests[0]?.isCancelled, 'the request is cancelled at the pod', 5000)
  assert.deepEqual((await scene.ask(toRequest('GET /patient/x'))).body.toString(), 'ab')
  assert.deepEqual(scene.results, ['hit'])
})

test('idleTimeout: a reply that keeps coming, slower in all than the time, is whole', slack, async t => {
  const { scene, pod } = await setScene(t, { idleTimeout: 600 })
  pod.answer = response => {
    let left = 10
    const timer = setInterval(() => {
      response.write('a')
      if (--left > 0) return
      clearInterval(timer)
      response.end()
    }, 100)
  }
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.body.toString(), reply.isComplete], ['aaaaaaaaaa', true])
})

test('idleTimeout: a slow reader is not the pod\'s pause', slack, async t => {
  const { scene, pod } = await setScene(t, { idleTimeout: 300 })
  const size = 20_000_000
  pod.answer = response => { response.end(Buffer.alloc(size, 'a')) }
  const client = await scene.client()
  client.socket.pause()
  client.write(toRequest('GET /d/x'))
  await until(() => pod.requests[0]?.isWhole, 'the pod answers')
  await pause(1500)
  client.socket.resume()
  const reply = await client.readReply()
  assert.deepEqual([reply.statusCode, reply.body.length, reply.isComplete], [200, size, true])
})
