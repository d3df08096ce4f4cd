import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { FastifyServerOptions } from 'fastify'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'

const forwarded = { host: 'app.test:8080', 'x-forwarded-for': '1.2.3.4, 5.6.7.8', 'x-forwarded-host': 'front.test', 'x-forwarded-proto': 'https', 'x-forwarded-port': '443' }

async function askWith (t: TestContext, trustProxy: FastifyServerOptions['trustProxy'], headers: Record<string, string | string[]>): Promise<Record<string, string[] | undefined>> {
  const scene = await setHttpScene(t, { fastify: trustProxy === undefined ? {} : { trustProxy } })
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x', headers))).statusCode, 200)
  const read = (name: string): string[] | undefined => pod.requests[0]?.values(`x-forwarded-${name}`)
  return { for: read('for'), host: read('host'), proto: read('proto') }
}

test('x-forwarded-*: without trustProxy they are replaced by what the application sees', async t => {
  for (const trustProxy of [undefined, false, '9.9.9.9'] as const) {
    assert.deepEqual(await askWith(t, trustProxy, forwarded), { for: ['127.0.0.1'], host: ['app.test:8080'], proto: ['http'] }, String(trustProxy))
  }
})

test('x-forwarded-*: with trustProxy the peer is appended, and host and proto are kept', async t => {
  for (const trustProxy of [true, '127.0.0.1', ['127.0.0.0/8'], (address: string) => address === '127.0.0.1']) {
    assert.deepEqual(await askWith(t, trustProxy, forwarded), { for: ['1.2.3.4, 5.6.7.8, 127.0.0.1'], host: ['front.test'], proto: ['https'] }, String(trustProxy))
  }
})

test('x-forwarded-*: where nothing was forwarded they are set, with and without trustProxy', async t => {
  for (const trustProxy of [undefined, true]) {
    assert.deepEqual(await askWith(t, trustProxy, { host: 'app.test' }), { for: ['127.0.0.1'], host: ['app.test'], proto: ['http'] }, String(trustProxy))
  }
})

test('x-forwarded-*: with trustProxy, a proto or host that came without a for is kept as well', async t => {
  assert.deepEqual(await askWith(t, true, { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'front.test' }), { for: ['127.0.0.1'], host: ['front.test'], proto: ['https'] })
})

test('x-forwarded-for: sent twice, both count with trustProxy and neither without', async t => {
  const twice = { 'x-forwarded-for': ['1.2.3.4', '5.6.7.8'] }
  assert.deepEqual((await askWith(t, true, twice)).for, ['1.2.3.4, 5.6.7.8, 127.0.0.1'])
  assert.deepEqual((await askWith(t, undefined, twice)).for, ['127.0.0.1'])
})
