import assert from 'node:assert/strict'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { startRawPod } from '../support/http-pod.ts'
import { toRequest } from '../support/raw-http.ts'
import { askForRefusal, deadAddress, readRefusal } from '../support/refusals.ts'

type Params = { Params: { id: string } }

test('statuses: a destination that was never bound is 404 with the configured text, whatever noPodStatus says', async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1')
  const destinationFrom = (r: { params: { id: string } }) => r.params.id
  scene.app.get<Params>('/plain/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom, onResult: scene.onResult }))
  scene.app.get<Params>('/told/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom, notFoundMessage: 'No such thing', noPodStatus: 503 }))
  scene.app.get<Params>('/delete/:id', scene.coordinator.lookupAndDeregister<Params>({ destinationFrom, notFoundMessage: 'No such thing' }))

  assert.deepEqual(await askForRefusal(scene, '/plain/x').then(({ statusCode, error, code }) => [statusCode, error, code]), [404, 'Not Found', 'PLT_COORDINATOR_NOT_FOUND'])
  assert.deepEqual(await askForRefusal(scene, '/told/x').then(({ statusCode, error }) => [statusCode, error]), [404, 'No such thing'])
  assert.deepEqual(await askForRefusal(scene, '/delete/x').then(({ statusCode, error }) => [statusCode, error]), [404, 'No such thing'])
  assert.deepEqual(scene.results, ['not_found'])
  assert.deepEqual(await scene.pods('x'), [])
})

test('statuses: noPodStatus applies to a bound destination without a live pod, with Retry-After, and binds nothing', async t => {
  const scene = await setHttpScene(t)
  await scene.pod('pod-1')
  await scene.raw.sadd(scene.key('destination', 'x'), 'dead-1')
  const destinationFrom = (r: { params: { id: string } }) => r.params.id
  scene.app.get<Params>('/plain/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom }))
  scene.app.get<Params>('/503/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom, noPodStatus: 503, notFoundMessage: 'Come back', onResult: scene.onResult }))

  assert.equal((await askForRefusal(scene, '/plain/x')).statusCode, 404)
  const refusal = await askForRefusal(scene, '/503/x')
  assert.deepEqual([refusal.statusCode, refusal.error, refusal.retryAfter], [503, 'Come back', '1'])
  assert.deepEqual(scene.results, ['not_found'])
  assert.deepEqual(await scene.pods('x'), ['dead-1'])
})

test('statuses: noPodStatus applies when there is no pod to claim on', async t => {
  const scene = await setHttpScene(t)
  const destinationFrom = (r: { params: { id: string } }) => r.params.id
  scene.app.get<Params>('/plain/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom, claimOnMiss: true }))
  scene.app.get<Params>('/503/:id', scene.coordinator.lookupAndProxy<Params>({ destinationFrom, claimOnMiss: true, noPodStatus: 503 }))

  assert.equal((await askForRefusal(scene, '/plain/x')).statusCode, 404)
  assert.equal((await askForRefusal(scene, '/503/x')).statusCode, 503)
  assert.deepEqual(await scene.pods('x'), [])
})

test('statuses: an unknown lock, and one whose pod died, is 404 or what noPodStatus says', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  await pod.member.registerLock('held', 'x')
  scene.app.get('/plain/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, notFoundMessage: 'No lock', onResult: scene.onResult }))
  scene.app.get('/503/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, noPodStatus: 503 }))

  assert.deepEqual(await askForRefusal(scene, '/plain/none').then(({ statusCode, error }) => [statusCode, error]), [404, 'No lock'])
  assert.equal((await scene.ask(toRequest('GET /plain/held'))).statusCode, 200)
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.equal((await askForRefusal(scene, '/plain/held')).statusCode, 404)
  assert.equal((await askForRefusal(scene, '/503/held')).statusCode, 503)
  assert.equal(pod.requests.length, 1)
  assert.deepEqual(scene.results, ['not_found', 'hit', 'not_found'])
})

test('statuses: a create without a pod, or with draining ones alone, is 503 with Retry-After and the configured text', async t => {
  const scene = await setHttpScene(t)
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, unavailableMessage: 'All busy', onResult: scene.onResult }))

  const none = await scene.ask(toRequest('POST /d', {}, '{}'))
  assert.deepEqual([none.statusCode, none.values('retry-after').length, readRefusal(none).error, readRefusal(none).code], [503, 1, 'All busy', 'PLT_COORDINATOR_NO_PODS'])
  const pod = await scene.pod('pod-1')
  await pod.member.setDraining(true)
  assert.equal((await scene.ask(toRequest('POST /d', {}, '{}'))).statusCode, 503)
  assert.equal(pod.requests.length, 0)
  assert.deepEqual(scene.results, ['unavailable', 'unavailable'])
})

test('statuses: a create whose pod began to drain meanwhile is 503 with Retry-After and refusedMessage, and leaves nothing bound', async t => {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', {
    answer: response => {
      pod.member.setDraining(true).then(() => response.writeHead(201, { 'content-type': 'application/json', 'x-pod': 'secret', 'content-length': '10' }).end('{"id":"x"}'), () => response.destroy())
    }
  })
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (body: { id: string }) => body.id, refusedMessage: 'Draining', onResult: scene.onResult }))

  const reply = await scene.ask(toRequest('POST /d', {}, '{}'))
  assert.deepEqual([reply.statusCode, reply.values('retry-after').length, readRefusal(reply).error], [503, 1, 'Draining'])
  assert.deepEqual(reply.values('x-pod'), [], 'nothing of the reply that was refused is left')
  assert.equal(pod.requests.length, 1)
  assert.deepEqual(scene.results, ['refused'])
  assert.deepEqual(await scene.pods('x'), [])
})

test('G06: a pod that refuses connections is 502 with Retry-After in each helper, and a delete that failed keeps the binding', async t => {
  const scene = await setHttpScene(t)
  const member = await scene.register('pod-1', deadAddress, ['x'])
  await member.registerLock('lock', 'x')
  const onResult = scene.onResult
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult }))
  scene.app.get('/l/:id', scene.coordinator.lookupLockAndProxy({ lockFrom: r => r.params.id, onResult }))
  scene.app.get('/delete/:id', scene.coordinator.lookupAndDeregister({ destinationFrom: r => r.params.id, onResult }))
  scene.app.get('/create', scene.coordinator.pickAndRegister({ registerIdFrom: () => 'y', onResult }))

  for (const path of ['/d/x', '/l/lock', '/delete/x', '/create']) {
    const refusal = await askForRefusal(scene, path)
    assert.deepEqual([refusal.statusCode, refusal.code, refusal.error, refusal.retryAfter], [502, 'PLT_COORDINATOR_POD_UNREACHABLE', 'Bad Gateway', '1'], path)
  }
  assert.deepEqual(scene.results, ['unreachable', 'unreachable', 'unreachable', 'unreachable'])
  assert.deepEqual(await scene.pods('x'), ['pod-1'])
  assert.deepEqual(await scene.pods('y'), [])
})

test('G06: pods that break off before their reply, or answer what is no HTTP, are 502', async t => {
  const scene = await setHttpScene(t)
  const cut = await startRawPod(t, socket => { socket.destroy() })
  const garbage = await startRawPod(t, 'EHLO 127.0.0.1\r\n\r\n')
  const half = await startRawPod(t, socket => { socket.end('HTTP/1.1 200 OK\r\ncontent-le') })
  await scene.register('cut', cut.address, ['cut'])
  await scene.register('garbage', garbage.address, ['garbage'])
  await scene.register('half', half.address, ['half'])
  scene.app.post('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))

  for (const id of ['cut', 'garbage', 'half']) {
    const reply = await scene.ask(toRequest(`POST /d/${id}`, {}, 'abc'))
    assert.deepEqual([reply.statusCode, readRefusal(reply).code], [502, 'PLT_COORDINATOR_POD_UNREACHABLE'], id)
    assert.equal(reply.values('retry-after').length, 1, id)
  }
  assert.deepEqual([cut, garbage, half].map(pod => pod.requests.length), [1, 1, 1])
  assert.deepEqual(scene.results, ['unreachable', 'unreachable', 'unreachable'])
})
