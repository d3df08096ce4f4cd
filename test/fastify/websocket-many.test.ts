import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { deadAddress } from '../support/refusals.ts'
import { exchange, openSocket, startSocketPod } from '../support/socket-pod.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 120_000 }

/** Connections and timers the process holds; the same before and after means that nothing leaked. */
function countResources (): number {
  return process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap' || name === 'Timeout').length
}

async function countConnections (server: Server): Promise<number> {
  return await new Promise((resolve, reject) => server.getConnections((error, count) => error === null ? resolve(count) : reject(error)))
}

test('websocket: 1,000 open sockets work, end with their clients, and leave nothing', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t)
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  const first = await openSocket(t, scene, '/d/x')
  first.socket.terminate()
  await until(async () => await countConnections(pod.server) === 0, 'the first is gone')
  const before = countResources()

  const opened = []
  for (let batch = 0; batch < 10; batch++) opened.push(...await Promise.all(Array.from({ length: 100 }, () => openSocket(t, scene, '/d/x'))))
  assert.equal(pod.open.size, 1000)
  const answers = await Promise.all(opened.map(({ socket }, at) => exchange(socket, String(at))))
  assert.deepEqual(answers.map(String), opened.map((_, at) => String(at)))

  for (const { socket } of opened) socket.terminate()
  await until(async () => await countConnections(pod.server) === 0 && await countConnections(scene.app.server) === 0, 'no connection is left')
  await until(() => countResources() <= before + 5, 'the process holds what it held before')
  assert.equal(scene.results.length, 1001)
})

test('websocket: 200 cycles against dead pods leave nothing', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.register('dead', deadAddress, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true, onResult: scene.onResult }))
  assert.equal((await openSocket(t, scene, '/d/x')).refused?.statusCode, 502)
  await until(async () => await countConnections(scene.app.server) === 0, 'the first is gone')
  const before = countResources()
  for (let batch = 0; batch < 20; batch++) {
    const cycle = await Promise.all(Array.from({ length: 10 }, () => openSocket(t, scene, '/d/x')))
    assert.deepEqual(cycle.map(({ refused }) => refused?.statusCode), cycle.map(() => 502))
  }
  await until(async () => await countConnections(scene.app.server) === 0, 'no connection is left')
  await until(() => countResources() <= before + 5, 'the process holds what it held before')
  assert.equal(scene.results.length, 201)
})

test('websocket: app.close() ends open and waiting sockets at once, on both sides', limit, async t => {
  const scene = await setHttpScene(t)
  const pod = await startSocketPod(t, raw => raw.url === '/d/x?wait')
  await scene.register('pod-1', pod.address, ['x'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, websocket: true }))
  const opened = await Promise.all(Array.from({ length: 50 }, () => openSocket(t, scene, '/d/x')))
  const waiting = openSocket(t, scene, '/d/x?wait').then(() => 'opened', () => 'failed')
  await until(() => pod.upgrades.length === 51, 'the pod has them all')
  const before = performance.now()
  await scene.app.close()
  await Promise.all(opened.map(({ closed }) => closed))
  assert.equal(await waiting, 'failed')
  await until(() => pod.open.size === 0, 'the pod saw them go', 5000)
  assert.ok(performance.now() - before < 5000)
})
