import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import type { ClientHttp2Session } from 'node:http2'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }

async function setHttp2Scene (t: TestContext) {
  const scene = await setHttpScene(t, { fastify: { http2: true } as never })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'], answer: (response, request) => { response.writeHead(201, { 'x-pod': 'own' }).end(`${request.method} ${request.body.toString()}`) } })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  const { url } = await scene.listen()
  const open = (): ClientHttp2Session => {
    const session = connect(url)
    session.on('error', () => {})
    atEnd(t, () => { session.destroy() })
    return session
  }
  return { scene, pod, open }
}

async function ask (session: ClientHttp2Session, method: string, body?: string): Promise<unknown[]> {
  const stream = session.request({ ':method': method, ':path': '/d/x' }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  const chunks: Buffer[] = []
  stream.on('data', chunk => chunks.push(chunk))
  const [headers] = await once(stream, 'response') as [Record<string, unknown>]
  await once(stream, 'end')
  return [headers[':status'], headers['x-pod'], Buffer.concat(chunks).toString()]
}

test('http2: an application of HTTP/2 passes GET and POST on, one after another and at once', limit, async t => {
  const { scene, pod, open } = await setHttp2Scene(t)
  const session = open()
  assert.deepEqual(await ask(session, 'GET'), [201, 'own', 'GET '])
  assert.deepEqual(await ask(session, 'POST', '{ "a": 1.0 }'), [201, 'own', 'POST { "a": 1.0 }'])
  const replies = await Promise.all(Array.from({ length: 10 }, (_, at) => ask(session, 'POST', `body ${at}`)))
  assert.deepEqual(replies, replies.map((_, at) => [201, 'own', `POST body ${at}`]))
  assert.equal(pod.requests.length, 12)
  assert.ok(pod.requests.every(({ rawHeaders }) => rawHeaders.every(name => !name.startsWith(':'))), 'no pseudo-header goes to the pod')
  await until(() => scene.results.length === 12, 'every result is told')
  assert.ok(scene.results.every(result => result === 'hit'))
})

for (const how of ['resets its stream', 'destroys its session'] as const) {
  for (const method of ['GET', 'POST']) {
    test(`http2: a client that ${how} before the pod replied to its ${method} cancels the pod's request`, limit, async t => {
      const { scene, pod, open } = await setHttp2Scene(t)
      const usual = pod.answer
      pod.answer = () => {}
      const session = open()
      const stream = session.request({ ':method': method, ':path': '/d/x' }, { endStream: method === 'GET' })
      stream.on('error', () => {})
      if (method === 'POST') stream.end('body')
      await until(() => pod.requests[0]?.isWhole === true, 'the pod has the request')
      if (how === 'resets its stream') stream.close(constants.NGHTTP2_CANCEL)
      else session.destroy()
      await until(() => pod.requests[0]?.isCancelled === true, 'the request is cancelled at the pod', 5000)
      await until(() => scene.results.length > 0, 'the result is told')
      pod.answer = usual
      assert.deepEqual(await ask(open(), 'GET'), [201, 'own', 'GET '])
      await until(() => scene.results.length > 1, 'the next result is told')
      assert.deepEqual(scene.results, ['aborted', 'hit'])
      assert.equal(pod.requests.length, 2)
    })
  }
}
