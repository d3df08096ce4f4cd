import assert from 'node:assert/strict'
import test from 'node:test'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { targets } from '../support/targets.ts'

test('paths and queries: the pod gets exactly what the client sent, or the client a 4xx (G04)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id/*', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  const refused: string[] = []
  for (const target of targets) {
    const count = pod.requests.length
    const reply = await scene.ask(toRequest(`GET ${target}`))
    if (reply.statusCode === 200) assert.deepEqual(pod.requests.slice(count).map(({ url }) => url), [target])
    else {
      refused.push(target)
      assert.ok(reply.statusCode >= 400 && reply.statusCode <= 499, `${target}: ${reply.statusCode}`)
      assert.equal(pod.requests.length, count)
    }
  }
  assert.deepEqual(refused, ['/d/x/%ff'], 'all but an escape that is no UTF-8, which Fastify refuses in a path')
})

test('paths and queries: a broken escape in the path is 400 on a connection that can be used again (G41)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, onResult: scene.onResult }))
  const client = await scene.client()
  for (const path of ['/d/%zz', '/d/%', '/d/a%2']) assert.equal((await client.ask(toRequest(`GET ${path}`))).statusCode, 400, path)
  assert.equal((await client.ask(toRequest('GET /d/x'))).statusCode, 200)
  assert.equal(pod.requests.length, 1)
  assert.deepEqual(scene.results, ['hit'])
})

test('messages that contradict themselves are 400, and the pod is not asked (G41)', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  for (const [what, fields] of [
    ['two lengths', 'content-length: 3\r\ncontent-length: 4\r\n'],
    ['a length and chunks', 'content-length: 3\r\ntransfer-encoding: chunked\r\n'],
    ['a length below 0', 'content-length: -1\r\n'],
    ['a length that is no number', 'content-length: 0x3\r\n'],
    ['an encoding after chunked', 'transfer-encoding: chunked, gzip\r\n'],
    ['a broken header', 'a b: c\r\n']
  ]) {
    const client = await scene.client()
    const reply = await client.ask(`POST /d/x HTTP/1.1\r\nhost: a.test\r\n${fields}\r\nabc`)
    assert.equal(reply.statusCode, 400, what)
    while (await client.reader.more());
    assert.equal(client.reader.isEnded, true, 'the connection is closed')
  }
  assert.equal(pod.requests.length, 0)
  assert.equal((await scene.ask(toRequest('POST /d/x', {}, 'abc'))).statusCode, 200, 'the application lives')
})

test('request targets in absolute form, or that begin with //host, never change which pod is asked', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x', 'other.test'] })
  const other = await startPod(t)
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  scene.app.get('/*', scene.coordinator.lookupAndProxy({ destinationFrom: () => 'x' }))
  const authority = other.address.slice('http://'.length)
  const expected: string[] = []
  for (const [target, path] of [
    [`${other.address}/d/x?a=1`, '/d/x?a=1'],
    [`HTTP://${authority}/d/x`, '/d/x'],
    [`http://user:password@${authority}/d/x`, '/d/x'],
    [other.address, '/'],
    [`${other.address}?a=1`, '/?a=1'],
    [`//${authority}/d/x`, `//${authority}/d/x`],
    [`///${authority}/d/x`, `///${authority}/d/x`],
    [`/\\${authority}/d/x`, `/\\${authority}/d/x`],
    [`/@${authority}/d/x`, `/@${authority}/d/x`]
  ] as const) {
    const reply = await scene.ask(toRequest(`GET ${target}`))
    assert.ok(reply.statusCode === 200 || (reply.statusCode >= 400 && reply.statusCode <= 499), `${target}: ${reply.statusCode} ${reply.body.toString()}`)
    if (reply.statusCode === 200) expected.push(path)
    assert.deepEqual(pod.requests.map(({ url }) => url), expected, target)
  }
  assert.equal(other.requests.length, 0)
  assert.ok(expected.includes('/d/x?a=1') && expected.some(path => path.startsWith('//')), 'some of each kind pass')
})

test('CONNECT and the target * do not reach a pod', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/*', scene.coordinator.lookupAndProxy({ destinationFrom: () => 'x' }))
  const star = await scene.ask(toRequest('OPTIONS *'))
  assert.ok(star.statusCode < 500, String(star.statusCode))
  const client = await scene.client()
  client.write(toRequest('CONNECT other.test:80'))
  while (await client.reader.more());
  assert.ok(pod.requests.every(({ method }) => method === 'OPTIONS'))
})
