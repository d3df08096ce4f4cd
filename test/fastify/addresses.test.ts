import assert from 'node:assert/strict'
import test from 'node:test'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { atEnd } from '../support/at-end.ts'
import { startPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'

for (const [what, toAddress, base] of [
  ['no path', (address: string) => address, ''],
  ['a trailing slash', (address: string) => `${address}/`, ''],
  ['a base path', (address: string) => `${address}/base`, '/base'],
  ['a base path with a trailing slash', (address: string) => `${address}/base/v1/`, '/base/v1'],
  ['a base path with escapes', (address: string) => `${address}/b%2Fc`, '/b%2Fc'],
  ['an upper-case scheme', (address: string) => address.replace('http', 'HTTP'), ''],
  ['a name in place of a number', (address: string) => address.replace('127.0.0.1', 'LOCALHOST'), '']
] as const) {
  test(`addresses: ${what} (G14)`, async t => {
    const scene = await setHttpScene(t)
    const pod = await startPod(t)
    await scene.register('pod-1', toAddress(pod.address), ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
    scene.app.get('/*', scene.coordinator.lookupAndProxy({ destinationFrom: () => 'x' }))
    const paths = ['/d/x', '/d/x?a=1', '/', '/?', '//a', '/a%2F/', '/%2e%2e/%2e%2e/z', '/../z']
    for (const path of paths) assert.equal((await scene.ask(toRequest(`GET ${path}`))).statusCode, 200, path)
    assert.deepEqual(pod.requests.map(({ url }) => url), paths.map(path => base + path))
    assert.deepEqual(new Set(pod.requests.flatMap(request => request.values('host'))), new Set([new URL(toAddress(pod.address)).host]))
  })
}

test('addresses: IPv6, with and without a base path (G14)', async t => {
  const scene = await setHttpScene(t)
  const pod = await startPod(t, undefined, '::1')
  await scene.register('pod-1', pod.address, ['x'])
  await scene.register('pod-2', `${pod.address}/base/`, ['y'])
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  for (const id of ['x', 'y']) assert.equal((await scene.ask(toRequest(`GET /d/${id}`))).statusCode, 200)
  assert.deepEqual(pod.requests.map(({ url }) => url), ['/d/x', '/base/d/y'])
  assert.deepEqual(pod.requests.map(request => request.values('host')), [[`[::1]:${pod.port}`], [`[::1]:${pod.port}`]])
})

for (const address of ['http://127.0.0.80:80', 'http://127.0.0.80', 'http://127.0.0.80:80/base']) {
  test(`addresses: the default port, as in ${address} (G32)`, async t => {
    const requests: (string | undefined)[] = []
    const server = createServer((request, response) => {
      requests.push(`${request.headers.host} ${request.url}`)
      response.end('ok')
    })
    server.listen(80, '127.0.0.80')
    const [error] = await Promise.race([once(server, 'listening').then(() => []), once(server, 'error')]) as [NodeJS.ErrnoException?]
    if (error !== undefined) return t.skip(`port 80 is not to be had: ${error.code}`)
    atEnd(t, () => { server.close().closeAllConnections() })
    const scene = await setHttpScene(t)
    await scene.register('pod-1', address, ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
    assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
    assert.deepEqual(requests, [`127.0.0.80 ${address.endsWith('base') ? '/base' : ''}/d/x`])
  })
}
