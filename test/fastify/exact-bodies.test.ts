import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import type { TestContext } from 'node:test'
import multipart from '@fastify/multipart'
import replyFrom from '@fastify/reply-from'
import { exactBodies, lookupAndDeregister, lookupAndProxy, lookupLockAndProxy, pickAndRegister } from '../../src/index.ts'
import type { AnyRoute, Registry } from '../../src/index.ts'
import { bodies, toHeaders } from '../support/bodies.ts'
import type { Pod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import type { HttpScene } from '../support/http-scene.ts'
import { toChunks, toRequest } from '../support/raw-http.ts'

const json = { 'content-type': 'application/json' }

interface StandAlone {
  scene: HttpScene
  registry: Registry
  pod: Pod
  /** Codes of the warnings logged. */
  warnings (): unknown[]
}

async function setStandAlone (t: TestContext, { exact }: { exact: boolean }): Promise<StandAlone> {
  const scene = await setHttpScene(t, { plugin: false })
  await scene.app.register(replyFrom)
  if (exact) await scene.app.register(exactBodies)
  const registry = scene.registry()
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  const warnings = (): unknown[] => scene.logs.filter(({ level }) => level >= 40).map(({ code, route }) => route ?? code)
  return { scene, registry, pod, warnings }
}

test('standalone helpers with exactBodies: every body reaches the pod as it came (G13)', async t => {
  const { scene, registry, pod, warnings } = await setStandAlone(t, { exact: true })
  scene.app.all('/d/:id', lookupAndProxy(registry, { destinationFrom: request => request.params.id }))
  for (const { what, type, encoding, bytes } of [...bodies, { what: 'much', type: 'application/json', bytes: randomBytes(70_000), encoding: undefined }]) {
    const headers = toHeaders({ type, ...(encoding === undefined ? {} : { encoding }) })
    for (const request of [
      toRequest('PUT /d/x', headers, bytes),
      Buffer.concat([toRequest('PUT /d/x', { ...headers, 'transfer-encoding': 'chunked' }), toChunks([bytes.subarray(0, 1), bytes.subarray(1)].filter(({ length }) => length > 0))])
    ]) {
      const reply = await scene.ask(request)
      assert.deepEqual([reply.statusCode, reply.body.toString()], [200, 'ok'], what)
      assert.deepEqual(pod.requests.at(-1)?.body, bytes, what)
      assert.deepEqual(pod.requests.at(-1)?.values('content-encoding'), encoding === undefined ? [] : [encoding])
      if (type !== undefined) assert.deepEqual(pod.requests.at(-1)?.values('content-type'), [type])
    }
  }
  const reply = await scene.ask(toRequest('DELETE /d/x', json))
  assert.equal(reply.statusCode, 200)
  assert.deepEqual(warnings(), [])
})

test('standalone helpers with exactBodies: a body without a type gets none on the way (G13)', async t => {
  const { scene, registry, pod } = await setStandAlone(t, { exact: true })
  scene.app.all('/d/:id', lookupAndProxy(registry, { destinationFrom: request => request.params.id }))
  assert.equal((await scene.ask(toRequest('PUT /d/x', {}, 'ab'))).statusCode, 200)
  assert.deepEqual(pod.requests[0]?.values('content-type'), [])
})

test('standalone helpers without exactBodies: JSON is written again, and a warning names each route once (G13)', async t => {
  const { scene, registry, pod, warnings } = await setStandAlone(t, { exact: false })
  const first = `/first-${randomBytes(4).toString('hex')}/:id`
  const second = `/second-${randomBytes(4).toString('hex')}`
  scene.app.post(first, lookupAndProxy(registry, { destinationFrom: request => request.params.id }))
  scene.app.post(second, pickAndRegister(registry, { registerIdFrom: (body: { id: string }) => body.id }))

  for (const [body, again] of [['{ "n": 1.50, "n": 2 }', '{"n":2}'], ['false', 'false'], ['0', '0'], ['""', '""'], ['null', 'null'], ['[ ]', '[]']]) {
    assert.equal((await scene.ask(toRequest(`POST ${first.replace(':id', 'x')}`, json, body))).statusCode, 200, body)
    assert.equal(pod.requests.at(-1)?.body.toString(), again)
    assert.deepEqual(pod.requests.at(-1)?.values('content-type'), ['application/json'])
    assert.deepEqual(pod.requests.at(-1)?.values('content-length'), [String(again?.length)])
  }
  for (const each of [1, 2]) assert.equal((await scene.ask(toRequest(`POST ${second}`, json, `{"a": ${each}}`))).statusCode, 200)
  assert.equal(pod.requests.at(-1)?.body.toString(), '{"a":2}')

  assert.deepEqual(warnings().filter(code => String(code).startsWith('POST')), [`POST ${first}`, `POST ${second}`])
  const line = scene.logs.find(({ route }) => route === `POST ${first}`)
  assert.equal(line?.code, 'PLT_COORDINATOR_BODY_PARSED')
  assert.match(String(line?.msg), /exactBodies/, 'it names the fix')
})

test('standalone helpers without exactBodies: text and buffers a parser made pass on', async t => {
  const { scene, registry, pod } = await setStandAlone(t, { exact: false })
  scene.app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body)
  scene.app.addContentTypeParser('application/pass', async (_request: unknown, payload: unknown) => payload)
  scene.app.post('/d/:id', lookupAndProxy(registry, { destinationFrom: request => request.params.id }))
  for (const [type, body] of [['text/plain', Buffer.from('äb')], ['application/octet-stream', Buffer.from('00ff80', 'hex')], ['application/pass', Buffer.from('ff00', 'hex')]] as const) {
    assert.equal((await scene.ask(toRequest('POST /d/x', { 'content-type': type }, body))).statusCode, 200, type)
    assert.deepEqual(pod.requests.at(-1)?.body, body)
    assert.deepEqual(pod.requests.at(-1)?.values('content-type'), [type])
  }
})

test('standalone helpers without exactBodies: a body the application parsed to fields is a coded 500, and no pod is asked (G13, G33)', async t => {
  const { scene, registry, pod } = await setStandAlone(t, { exact: false })
  await scene.app.register(multipart)
  scene.app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async (_request: unknown, body: string) => Object.fromEntries(new URLSearchParams(body)))
  scene.app.post('/d/:id', lookupAndProxy(registry, { destinationFrom: request => request.params.id, onResult: scene.onResult }))
  for (const [type, body] of [['application/x-www-form-urlencoded', 'a=1'], ['multipart/form-data; boundary=b', '--b\r\nContent-Disposition: form-data; name="f"\r\n\r\na\r\n--b--\r\n']] as const) {
    const reply = await scene.ask(toRequest('POST /d/x', { 'content-type': type }, body))
    assert.equal(reply.statusCode, 500)
    const { code, statusCode, error, message } = JSON.parse(reply.body.toString()) as Record<string, unknown>
    assert.deepEqual([code, statusCode, error], ['PLT_COORDINATOR_BODY_NOT_WRITABLE', 500, 'Internal Server Error'])
    assert.equal(typeof message, 'string')
  }
  assert.equal(pod.requests.length, 0)
  assert.deepEqual(scene.results, ['upstream_error', 'upstream_error'])
})

test('standalone helpers without exactBodies: a type without a parser is the 415 of Fastify', async t => {
  const { scene, registry, pod } = await setStandAlone(t, { exact: false })
  scene.app.post('/d/:id', lookupAndProxy(registry, { destinationFrom: request => request.params.id }))
  const reply = await scene.ask(toRequest('POST /d/x', { 'content-type': 'image/png' }, 'ab'))
  assert.equal(reply.statusCode, 415)
  assert.equal(pod.requests.length, 0)
})

test('standalone helpers: all four do their duty, with paths and queries as they came', async t => {
  for (const exact of [false, true]) {
    const { scene, registry, pod } = await setStandAlone(t, { exact })
    pod.answer = (response, { method }) => {
      if (method === 'DELETE') response.writeHead(204).end()
      else response.writeHead(201, { 'content-type': 'application/json' }).end('{"id": "new"}')
    }
    const params = (request: { params: Record<string, string> }): string => request.params.id as string
    scene.app.get('/d/:id/*', lookupAndProxy(registry, { destinationFrom: params, onResult: scene.onResult }))
    scene.app.post('/d', pickAndRegister(registry, { registerIdFrom: (body: { id: string }) => body.id, onResult: scene.onResult }))
    scene.app.delete('/d/:id', lookupAndDeregister(registry, { destinationFrom: params, onResult: scene.onResult }))
    scene.app.get('/l/:id', lookupLockAndProxy(registry, { lockFrom: params, onResult: scene.onResult }))
    await scene.raw.hset(scene.key('lock', 'lock-1'), { podId: 'pod-1', destinationId: 'x' })

    const replies = []
    for (const line of ['GET /d/x/a%2Fb?next=%2Fx', 'POST /d', 'GET /l/lock-1?', 'DELETE /d/x']) replies.push(await scene.ask(toRequest(line)))

    assert.deepEqual(replies.map(({ statusCode }) => statusCode), [201, 201, 201, 204])
    assert.deepEqual(pod.requests.map(({ method, url }) => `${method} ${url}`), ['GET /d/x/a%2Fb?next=%2Fx', 'POST /d', 'GET /l/lock-1?', 'DELETE /d/x'])
    assert.deepEqual(scene.results, ['hit', 'spawned', 'hit', 'deregistered'])
    assert.deepEqual([await scene.pods('new'), await scene.pods('x')], [['pod-1'], []])
  }
})

test('standalone helpers: without @fastify/reply-from the answer is a coded 500', async t => {
  const scene = await setHttpScene(t, { plugin: false })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get<AnyRoute>('/d/:id', lookupAndProxy(scene.registry(), { destinationFrom: request => request.params.id }))
  const reply = await scene.ask(toRequest('GET /d/x'))
  assert.equal(reply.statusCode, 500)
  assert.equal(pod.requests.length, 0)
  assert.match(JSON.stringify(scene.logs), /register/i, 'the log names the fix')
})

test('exactBodies: registering it twice, or beside the plugin, is harmless', async t => {
  const scene = await setHttpScene(t)
  await scene.app.register(exactBodies)
  await scene.app.register(exactBodies)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  assert.equal((await scene.ask(toRequest('POST /d/x', json, '{ "n": 1.0 }'))).statusCode, 200)
  assert.equal(pod.requests[0]?.body.toString(), '{ "n": 1.0 }')
})
