import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'

test('request bytes: a GET with a body keeps it', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  const client = await scene.client()
  const headers = { 'content-type': 'application/json' }
  for (const request of [
    toRequest('GET /d/x', headers, '{ "query": 1.0 }'),
    Buffer.concat([toRequest('GET /d/x', { ...headers, 'transfer-encoding': 'chunked' }), toChunks(['{ "query"', ': 1.0 }'])])
  ]) {
    const reply = await client.ask(request)
    assert.equal(reply.statusCode, 200)
    assert.equal(pod.requests.at(-1)?.body.toString(), '{ "query": 1.0 }')
    assert.deepEqual(pod.requests.at(-1)?.values('content-type'), ['application/json'])
  }
  await client.ask(toRequest('GET /d/x'))
  assert.equal(pod.requests.at(-1)?.body.length, 0)
  assert.deepEqual(pod.requests.at(-1)?.values('content-length'), [])
})
