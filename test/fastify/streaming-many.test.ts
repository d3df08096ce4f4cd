import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 120_000 }

async function setScene (t: test.TestContext) {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  return { scene, pod }
}

test('streaming: 200 idle event streams of one pod do not keep another request from it', limit, async t => {
  const { scene, pod } = await setScene(t)
  pod.answer = (response, { url }) => {
    if (url.endsWith('?events')) response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    else response.end('ok')
  }
  const clients = await Promise.all(Array.from({ length: 200 }, () => scene.client()))
  for (const client of clients) client.write(toRequest('GET /d/x?events'))
  await until(() => clients.every(client => client.reader.bytes.includes('data: 1')), 'all have their first event', 10_000)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).body.toString(), 'ok')
})
