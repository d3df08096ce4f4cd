import assert from 'node:assert/strict'
import test from 'node:test'
import { Scene } from './support/scene.ts'

const path = '/tenants/acme/keys/k'

test('a body that is no UTF-8, or says that it is something else, is refused, and the value stays', async t => {
  const scene = new Scene(t)
  const { app, send } = await scene.startPod()
  await send('POST', '/tenants/acme')
  await send('PUT', path, { value: 'before' })
  const json = { 'content-type': 'application/json' }
  const bodies = [
    [json, Buffer.from([...Buffer.from('{"value":"a'), 0xff, ...Buffer.from('b"}')]), 400, 'STORAGE_INVALID_VALUE'],
    [json, Buffer.from([...Buffer.from('{"value":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]), 400, 'STORAGE_INVALID_VALUE'],
    [{ 'content-type': 'application/json; charset=iso-8859-1' }, Buffer.from('{"value":"\xe9"}', 'latin1'), 415, 'STORAGE_UNSUPPORTED_BODY'],
    [{ ...json, 'content-encoding': 'gzip' }, Buffer.from('{"value":"zz"}'), 415, 'STORAGE_UNSUPPORTED_BODY']
  ] as const
  for (const [headers, payload, status, code] of bodies) {
    const reply = await app.inject({ method: 'PUT', url: path, headers, payload })
    assert.deepEqual([reply.statusCode, reply.json().code], [status, code])
  }
  assert.deepEqual((await send('GET', path)).body, { value: 'before', encoding: 'text' })
  const utf8 = await app.inject({ method: 'PUT', url: path, headers: { 'content-type': 'application/json; charset="UTF-8"' }, payload: '{"value":"\u00e9\u{1F984}"}' })
  assert.equal(utf8.statusCode, 204)
  assert.deepEqual((await send('GET', path)).body, { value: '\u00e9\u{1F984}', encoding: 'text' })
})

test('a transaction begins with an object for a body, or none, and with nothing else', async t => {
  const scene = new Scene(t)
  const { send } = await scene.startPod()
  await send('POST', '/tenants/acme')
  for (const body of [[], 5, true, null, '"abc"'] as const) {
    const reply = await send('POST', '/tenants/acme/transactions', typeof body === 'string' ? body : JSON.stringify(body))
    assert.deepEqual([reply.status, reply.body.code], [400, 'STORAGE_INVALID_ISOLATION_LEVEL'], JSON.stringify(body))
  }
})
