import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { startPod, startRawPod } from '../support/http-pod.ts'
import { toRequest } from '../support/raw-http.ts'
import { assertNothingInner, deadAddress } from '../support/refusals.ts'
import { exchange, openSocket, startSocketPod } from '../support/socket-pod.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 60_000 }

test('websocket: no destination is 404 or noPodStatus, a bad id 400, a dead pod 502, all before the 101 and with a refusal\'s form', limit, async t => {
  const scene = await setHttpScene(t)
  const dead = await scene.register('dead', deadAddress, ['dead'])
  await dead.registerLock('dead', 'dead')
  await scene.raw.sadd(scene.key('destination', 'orphan'), 'gone')
  const { app, coordinator, onResult } = scene
  app.get('/d/:id?', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, noPodStatus: 503, notFoundMessage: 'No pod', onResult }))
  app.get('/l/:id', coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, websocket: true, onResult }))
  for (const [path, statusCode, code, retryAfter] of [
    ['/d/none', 404, 'NOT_FOUND', undefined], ['/d/orphan', 503, 'NOT_FOUND', '1'], ['/d/', 400, 'INVALID_ID', undefined], ['/d/dead', 502, 'POD_UNREACHABLE', '1'],
    ['/l/none', 404, 'NOT_FOUND', undefined], ['/l/dead', 502, 'POD_UNREACHABLE', '1']
  ] as const) {
    const { refused } = await openSocket(t, scene, path)
    assert.equal(refused?.statusCode, statusCode, path)
    assertNothingInner(refused?.body ?? '')
    const body = JSON.parse(refused?.body ?? '') as Record<string, unknown>
    assert.deepEqual([body.statusCode, body.code, refused?.headers['retry-after']], [statusCode, `PLT_COORDINATOR_${code}`, retryAfter], path)
  }
  assert.deepEqual(scene.results, ['not_found', 'not_found', 'bad_request', 'unreachable', 'not_found', 'unreachable'])
})

test('websocket: a pod that breaks off, or is silent past requestTimeout, is 502 and 504 before the 101', limit, async t => {
  const scene = await setHttpScene(t)
  const cut = await startRawPod(t, socket => { socket.destroy() })
  await scene.register('cut', cut.address, ['cut'])
  let closedCount = 0
  const silent = await startSocketPod(t, (_raw, socket) => {
    socket.resume().once('end', () => socket.destroy()).once('close', () => { closedCount++ })
    return true
  })
  await scene.register('silent', silent.address, ['silent'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, requestTimeout: 300, onResult: scene.onResult }))
  assert.equal((await openSocket(t, scene, '/d/cut')).refused?.statusCode, 502)
  assert.equal((await openSocket(t, scene, '/d/silent')).refused?.statusCode, 504)
  assert.equal(silent.upgrades.length, 1)
  await until(() => closedCount === 1, 'the pod is not left with the request')
  assert.deepEqual(scene.results, ['unreachable', 'timeout'])
})

test('websocket: an upgrade whose pod refuses the connection goes to another live pod of the destination', limit, async t => {
  const scene = await setHttpScene(t, { plugin: { strategy: { pick: candidates => candidates[0] ?? null } } })
  await scene.register('a-dead', deadAddress, ['x'])
  const live = await startSocketPod(t)
  await scene.register('b-lives', live.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  const { socket } = await openSocket(t, scene, '/d/x')
  assert.equal((await exchange(socket, 'hello')).toString(), 'hello')
  assert.equal(live.upgrades.length, 1)
  assert.deepEqual(scene.results, ['hit'])
})

test('websocket: a pod that declines is passed on: 401 with its headers and body, and 200', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t, (raw, socket) => {
    const status = raw.url?.endsWith('401') === true ? '401 Unauthorized' : '200 OK'
    socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\nwww-authenticate: Basic\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\nno`)
    return true
  })
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  for (const status of [401, 200]) {
    const { refused } = await openSocket(t, scene, `/d/x?${status}`)
    assert.deepEqual([refused?.statusCode, refused?.body, refused?.headers['www-authenticate'], refused?.headers['set-cookie']], [status, 'no', 'Basic', ['a=1', 'b=2']])
  }
  assert.equal(pod.upgrades.length, 2)
  assert.deepEqual(scene.results, ['hit', 'hit'])
})

for (const how of [undefined, 'reset'] as const) {
  test(`websocket: a pod that dies${how === 'reset' ? ' with a reset' : ''} closes the client within a second`, limit, async t => {
    const scene = await setHttpScene(t)
    const pod = await startSocketPod(t)
    await scene.register('pod-1', pod.address, ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
    const opened = await Promise.all(Array.from({ length: 20 }, () => openSocket(t, scene, '/d/x')))
    const before = performance.now()
    await pod.die(how)
    const codes = await Promise.all(opened.map(({ closed }) => closed))
    // A second is asked; as much again is for a loaded machine.
    assert.ok(performance.now() - before < 2000)
    assert.deepEqual(codes, opened.map(() => 1006))
  })
}

test('websocket: a route without the option answers 501, and no pod is asked', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t)
  const http = await startPod(t)
  const member = await scene.register('pod-1', pod.address, ['x'])
  await member.registerLock('lock', 'x')
  await scene.register('pod-2', http.address, ['plain'])
  const { app, coordinator, onResult } = scene
  app.get('/d/:id', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))
  app.get('/l/:id', coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult }))
  app.get('/create', coordinator.pickAndRegister({ registerIdFrom: () => 'new', onResult }))
  app.get('/delete/:id', coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, onResult }))
  app.get('/ws/:id', coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  for (const path of ['/d/x', '/l/lock', '/create', '/delete/x']) {
    const { refused } = await openSocket(t, scene, path)
    assert.deepEqual([refused?.statusCode, (JSON.parse(refused?.body ?? '{}') as { code?: string }).code], [501, 'PLT_COORDINATOR_UPGRADE_NOT_SUPPORTED'], path)
  }
  assert.equal(pod.upgrades.length, 0)
  assert.deepEqual(scene.results, ['bad_request', 'bad_request', 'bad_request', 'bad_request'])
  // The same, and ordinary requests, on an application that takes no upgrades at all.
  const plain = await setHttpScene(t)
  await plain.register('pod-2', http.address, ['plain'])
  plain.app.get('/d/:id', plain.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  assert.equal((await openSocket(t, plain, '/d/plain')).refused?.statusCode, 501)
  assert.equal((await plain.ask(toRequest('GET /d/plain'))).statusCode, 200)
  assert.equal(http.requests.length, 1)
})

test('websocket: a path without a route is 404, hooks of the application may refuse, and ordinary requests are served as before', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t)
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.addHook('onRequest', async (request, reply) => {
    if (request.headers['x-forbidden'] !== undefined) return await reply.code(403).send({ own: true })
  })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  scene.app.get('/own', async () => ({ own: true }))
  assert.equal((await openSocket(t, scene, '/nowhere')).refused?.statusCode, 404)
  const forbidden = await openSocket(t, scene, '/d/x', [], { headers: { 'x-forbidden': '1' } })
  assert.deepEqual([forbidden.refused?.statusCode, forbidden.refused?.body], [403, '{"own":true}'])
  assert.equal(pod.upgrades.length, 0)
  assert.equal((await scene.ask(toRequest('GET /d/x'))).body.toString(), 'no upgrade')
  const client = await scene.client()
  for (let count = 0; count < 3; count++) assert.equal((await client.ask(toRequest('GET /own'))).body.toString(), '{"own":true}')
})
