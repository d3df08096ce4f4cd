import assert from 'node:assert/strict'
import { connect } from 'node:net'
import test from 'node:test'
import { until } from '../../test/support/store.ts'
import { Scene } from './support/scene.ts'

test('bindings of tenants that do not exist go, although no request for them ever came; those of tenants stay', async t => {
  const scene = new Scene(t)
  await scene.startPod('pod-1', { STRAYS_INTERVAL: 200 })
  const { url, send } = await scene.startCoordinator()
  assert.equal((await send('POST', '/tenants/acme')).status, 201)
  // As a coordinator leaves them that claimed for a client that left, or for a pod that died; one is no tenant id at all.
  const strays = [...Array.from({ length: 30 }, (_, at) => `stray-${at}`), 'a\0b']
  for (const id of strays) assert.equal(await scene.registry.addPodToDestination(id, 'pod-1'), true)

  await until(async () => (await scene.registry.listOwned('pod-1')).length === 1, 'the strays are given back')
  assert.deepEqual(await scene.registry.listOwned('pod-1'), ['acme'])
  for (const id of strays) assert.equal(await scene.registry.hasBinding(id), false)

  // And as it comes about: the client leaves while its tenant is being claimed.
  for (let at = 0; at < 20; at++) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`GET /tenants/gone-${at}/keys HTTP/1.1\r\nHost: x\r\n\r\n`, () => setTimeout(() => socket.destroy(), at % 5))
  }
  assert.equal((await send('PUT', '/tenants/acme/keys/k', { value: 'v' })).status, 204)
  await until(async () => (await scene.registry.listOwned('pod-1')).join() === 'acme', 'nothing is left of those that never were')
  assert.deepEqual((await send('GET', '/tenants/acme/keys/k')).body, { value: 'v', encoding: 'text' })
})
