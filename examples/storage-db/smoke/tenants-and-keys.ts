// Tenants and keys: everything a single request can show.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Smoke } from './checks.ts'

export async function tryTenantsAndKeys (smoke: Smoke): Promise<void> {
  const { api } = smoke
  const main = smoke.name('acme')

  await smoke.check('a tenant is created once, then found', async () => {
    const [first, second] = [await api.create(main), await api.create(main)]
    assert.deepEqual([first.status, first.body, second.status, second.body], [201, { id: main }, 200, { id: main }])
    return `by ${first.headers['x-storage-pod']}`
  })

  await smoke.check('of twenty who create a tenant at once one does, and all reach one pod', async () => {
    const tenantId = smoke.name('race')
    const replies = await Promise.all(Array.from({ length: 20 }, () => api.create(tenantId)))
    assert.deepEqual(replies.map(reply => reply.status).sort(), [...Array(19).fill(200), 201])
    assert.equal(new Set(replies.map(reply => reply.headers['x-storage-pod'])).size, 1)
    const owners = (await api.listPods()).filter(pod => pod.tenants.includes(tenantId))
    assert.equal(owners.length, 1)
  })

  await smoke.check('a key is written, read, listed and deleted', async () => {
    assert.equal((await api.put(main, 'colour', 'green')).status, 204)
    assert.deepEqual((await api.get(main, 'colour')).body, { value: 'green', encoding: 'text' })
    assert.deepEqual((await api.list(main)).body, { keys: ['colour'], next: null })
    assert.equal((await api.remove(main, 'colour')).status, 204)
    assert.deepEqual([(await api.remove(main, 'colour')).status, (await api.get(main, 'colour')).status], [404, 404])
  })

  await smoke.check('text comes back as it was: empty, with U+0000, beyond the basic plane', async () => {
    for (const text of ['', 'a\0b', '\u{1F984}', 'line\r\n"quote"\\', '\u00e9e\u0301']) {
      assert.equal((await api.put(main, 'text', text)).status, 204)
      assert.deepEqual((await api.get(main, 'text')).body, { value: text, encoding: 'text' })
    }
  })

  await smoke.check('any bytes come back as base64', async () => {
    const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)), randomBytes(1001)]).toString('base64')
    assert.equal((await api.put(main, 'bytes', bytes, 'base64')).status, 204)
    assert.deepEqual((await api.get(main, 'bytes')).body, { value: bytes, encoding: 'base64' })
  })

  await smoke.check('a value of 1 MiB fits in each form, one byte more does not', async () => {
    const size = 2 ** 20
    for (const text of ['x'.repeat(size), '\u0001'.repeat(size)]) {
      assert.equal((await api.put(main, 'large', text)).status, 204)
      assert.equal((await api.get(main, 'large')).body.value === text, true)
      assert.equal((await api.put(main, 'large', `${text}x`)).status, 413)
    }
    const bytes = randomBytes(size + 1)
    assert.equal((await api.put(main, 'large', bytes.subarray(1).toString('base64'), 'base64')).status, 204)
    assert.equal((await api.get(main, 'large')).body.value === bytes.subarray(1).toString('base64'), true)
    assert.equal((await api.put(main, 'large', bytes.toString('base64'), 'base64')).status, 413)
    // Refused before it has arrived: some clients hear of the closed connection first.
    const refused = await api.put(main, 'large', 'x'.repeat(20 * size)).then(reply => reply.status, error => error.code)
    assert.ok([413, 'EPIPE', 'ECONNRESET'].includes(refused), refused)
  })

  await smoke.check('what cannot be stored is refused with 400', async () => {
    const wrong = ['{"value":1}', '{"value":"a","encoding":"hex"}', '{"value":"YQ","encoding":"base64"}', '{"value":"YR==","encoding":"base64"}',
      '{"value":"Y Q=","encoding":"base64"}', '{"value":"\\ud800"}', '{}', '[]', 'null', '{"value":']
    const path = `/tenants/${main}/keys/wrong`
    for (const body of wrong) assert.equal((await api.send('PUT', path, body)).status, 400, body)
    assert.deepEqual([(await api.get(main, 'a\0b')).status, (await api.get(main, 'k'.repeat(3000))).status], [400, 400])
    assert.deepEqual([(await api.send('GET', `/tenants/${main}/keys/%FF`)).status, (await api.list(main, '?limit=0')).status], [400, 400])
    assert.equal((await api.get(main, 'wrong')).status, 404)
  })

  await smoke.check('odd tenant ids are tenants of their own, odd keys keys of their own', async () => {
    const odd = ['a/b', 'a b', '..', '.', 'a-b', 'a_b', 'A-B', 'a%2Fb', 'a+b', '*', ':id', '"; DROP SCHEMA public', 'käse', '\u{1F984}', 'x'.repeat(1900), 'constructor']
    const tenantIds = odd.map(id => smoke.name(id))
    await Promise.all(tenantIds.map(async id => assert.equal((await api.create(id)).status, 201, id)))
    for (const id of tenantIds) assert.equal((await api.put(id, 'own', id)).status, 204)
    for (const id of tenantIds) assert.equal((await api.get(id, 'own')).body.value, id)
    for (const key of odd) assert.equal((await api.put(main, key, key)).status, 204, key)
    for (const key of odd) assert.equal((await api.get(main, key)).body.value, key)
  })

  await smoke.check('keys are listed in pages, by their bytes', async () => {
    const tenantId = smoke.name('pages')
    await api.create(tenantId)
    const keys = ['B', 'a', 'a/b', 'ab', 'b', 'é', 'ｚ', '\u{1F984}']
    for (const key of [...keys].reverse()) await api.put(tenantId, key, 'x')
    const seen: string[] = []
    let query = '?limit=3'
    for (;;) {
      const { body } = await api.list(tenantId, query)
      seen.push(...body.keys)
      if (body.next === null) break
      query = `?limit=3&after=${encodeURIComponent(body.next)}`
    }
    assert.deepEqual(seen, keys)
  })

  await smoke.check('a deleted tenant is gone, and comes back empty', async () => {
    const tenantId = smoke.name('gone')
    await api.create(tenantId)
    await api.put(tenantId, 'k', 'v')
    assert.deepEqual([(await api.drop(tenantId)).status, (await api.drop(tenantId)).status], [204, 404])
    assert.deepEqual([(await api.put(tenantId, 'k', 'v')).status, (await api.get(tenantId, 'k')).status], [404, 404])
    assert.equal((await api.create(tenantId)).status, 201)
    assert.deepEqual((await api.list(tenantId)).body, { keys: [], next: null })
  })

  await smoke.check('a tenant that never was is 404 everywhere, and leaves no binding', async () => {
    const tenantId = smoke.name('never')
    const replies = [await api.get(tenantId, 'k'), await api.put(tenantId, 'k', 'v'), await api.remove(tenantId, 'k'), await api.list(tenantId), await api.begin(tenantId), await api.drop(tenantId)]
    for (const { status, body } of replies) assert.deepEqual([status, body.code], [404, 'STORAGE_TENANT_NOT_FOUND'])
    assert.deepEqual((await api.listPods()).filter(pod => pod.tenants.includes(tenantId)), [])
    const unknown = await api.send('GET', '/nothing')
    assert.deepEqual([unknown.status, Object.keys(unknown.body)], [404, ['statusCode', 'code', 'error', 'message']])
  })

  await smoke.check('writes that run while their tenant is deleted are made or find no tenant', async () => {
    const tenantId = smoke.name('vanishing')
    await api.create(tenantId)
    const writes = Array.from({ length: 40 }, (_, i) => api.put(tenantId, `k${i}`, 'v'))
    const dropped = await api.drop(tenantId)
    const statuses = (await Promise.all(writes)).map(reply => reply.status)
    assert.equal(dropped.status, 204)
    assert.deepEqual(statuses.filter(status => status !== 204 && status !== 404), [])
  })
}
