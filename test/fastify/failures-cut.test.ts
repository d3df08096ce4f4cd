import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { assertNothingInner, readRefusal } from '../support/refusals.ts'
import { until } from '../support/store.ts'

async function setCutScene (t: test.TestContext, reply: string): Promise<HttpScene & { asked: () => number }> {
  const scene = await setHttpScene(t)
  const pod = await startRawPod(t, socket => { socket.end(reply) })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  scene.app.post('/create', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, onResult: scene.onResult }))
  return Object.assign(scene, { asked: () => pod.requests.length })
}

test('cuts: a chunked reply cut in the middle reaches the client without a terminating chunk', async t => {
  const scene = await setCutScene(t, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n')

  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.isComplete], [200, 'first', false])
  assert.equal(scene.asked(), 1)
  assert.deepEqual(scene.results, ['hit'])
})

test('cuts: a reply with a length cut in the middle is short for the client', async t => {
  const scene = await setCutScene(t, 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst')

  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.deepEqual([reply.statusCode, reply.values('content-length'), reply.body.toString(), reply.isComplete], [200, ['100'], 'first', false])
  assert.equal(scene.asked(), 1)
})

test('cuts: a reply cut after its headers is a cut or a 502 for the client, never a whole reply or a 500', async t => {
  for (const head of ['content-length: 100', 'transfer-encoding: chunked']) {
    const scene = await setCutScene(t, `HTTP/1.1 200 OK\r\n${head}\r\n\r\n`)
    const client = await scene.client()
    client.write(toRequest('POST /d/x', {}, 'abc'))
    const reply = await client.readReply('POST').catch(() => undefined)
    if (reply?.isComplete === true) assert.equal(reply.statusCode, 502, head)
    assertNothingInner(reply?.body.toString() ?? '')
    assert.equal(scene.asked(), 1)
    assert.equal(scene.results.length, 1)
  }
})

test('cuts: a create whose reply is cut is 502, nothing is bound, and it is not sent again', async t => {
  const scene = await setCutScene(t, 'HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"id":"new"')

  const reply = await scene.ask(toRequest('POST /create', {}, '{}'))
  assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'])
  assert.equal(scene.asked(), 1)
  assert.deepEqual(scene.results, ['unreachable'])
  assert.deepEqual(await scene.keys().then(keys => keys.filter(key => key.startsWith('destination:'))), ['destination:x'])
})

test('cuts: after a cut the application serves the next request on a new connection', async t => {
  const scene = await setCutScene(t, 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst')
  const pod = await scene.pod('pod-2', { destinationIds: ['y'] })

  await scene.ask(toRequest('GET /d/x'))
  const client = await scene.client()
  assert.equal((await client.ask(toRequest('GET /d/y'))).body.toString(), 'ok')
  assert.equal((await client.ask(toRequest('GET /d/y'))).body.toString(), 'ok')
  await until(() => pod.requests.length === 2, 'both came')
})
