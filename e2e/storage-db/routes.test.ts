import assert from 'node:assert/strict'
import { request as startRequest } from 'node:http'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { until } from '../../test/support/store.ts'
import { atClose } from '../support/closing.ts'
import { Scene } from './support/scene.ts'

test('every reply names the pod and errors have one shape, whoever found them', async t => {
  const scene = new Scene(t)
  await scene.startPod('pod-1')
  const { send } = await scene.startCoordinator()
  await send('POST', '/tenants/acme')
  const errors = [
    ['GET', '/tenants/none/keys/k', undefined, 404, 'STORAGE_TENANT_NOT_FOUND'],
    ['GET', '/tenants/acme/keys/k', undefined, 404, 'STORAGE_KEY_NOT_FOUND'],
    ['DELETE', '/tenants/acme/keys/k', undefined, 404, 'STORAGE_KEY_NOT_FOUND'],
    ['GET', '/tenants/acme/keys/a%00b', undefined, 400, 'STORAGE_INVALID_KEY'],
    ['GET', `/tenants/acme/keys/${'k'.repeat(2049)}`, undefined, 400, 'STORAGE_INVALID_KEY'],
    ['PUT', '/tenants/acme/keys/k', '{"value":', 400, 'FST_ERR_CTP_INVALID_JSON_BODY'],
    ['PUT', '/tenants/acme/keys/k', '', 400, 'STORAGE_INVALID_VALUE'],
    ['PUT', '/tenants/acme/keys/k', { value: 'x'.repeat(2 ** 20 + 1) }, 413, 'STORAGE_VALUE_TOO_LARGE'],
    ['GET', '/tenants/acme/keys?limit=1001', undefined, 400, 'STORAGE_INVALID_QUERY'],
    ['GET', '/tenants/acme/keys?limit=1&limit=2', undefined, 400, 'STORAGE_INVALID_QUERY'],
    ['GET', '/tenants/acme/keys?after=a&after=b', undefined, 400, 'STORAGE_INVALID_KEY']
  ] as const
  for (const [method, path, body, status, code] of errors) {
    const reply = await send(method, path, body)
    assert.deepEqual([reply.status, reply.body.code, reply.headers['x-storage-pod']], [status, code, 'pod-1'], path.slice(0, 60))
    assert.deepEqual(Object.keys(reply.body).sort(), ['code', 'error', 'message', 'statusCode'])
  }
  const ofCoordinator = [['GET', '/nothing', 404], ['GET', '/tenants//keys/k', 400], ['GET', '/tenants/a%00b/keys/k', 400], ['GET', '/tenants/%FF/keys/k', 400], ['POST', '/transactions/none/commit', 404]] as const
  for (const [method, path, status] of ofCoordinator) {
    const reply = await send(method, path)
    assert.deepEqual([reply.status, reply.headers['x-storage-pod']], [status, undefined], path)
    assert.deepEqual(Object.keys(reply.body).sort(), ['code', 'error', 'message', 'statusCode'])
  }
})

test('a request without a body may name the type of one', async t => {
  const scene = new Scene(t)
  const pod = await scene.startPod()
  for (const [method, path, status] of [['POST', '/tenants/acme', 201], ['POST', '/tenants/acme/transactions', 201], ['DELETE', '/tenants/acme', 204]] as const) {
    assert.equal((await pod.send(method, path, '')).status, status)
  }
})

test('odd ids are told apart, in PostgreSQL and in Valkey, on the way through a coordinator', async t => {
  const scene = new Scene(t)
  await Promise.all([scene.startPod('pod-1'), scene.startPod('pod-2')])
  const { send } = await scene.startCoordinator()
  const ids = ['a-b', 'a_b', 'A-B', 'A_B', 'a/b', 'a b', '..', '.', '%', '%2F', 'a%2Fb', '*', ':id', '?', '#', ';', '\\', '"', "'", '__proto__', 'constructor', 'ä', 'a\u0308', '\u{1F984}', '\u0001', 'x'.repeat(2048), 'x'.repeat(2047)]
  const path = (id: string): string => encodeURIComponent(id).replaceAll('.', '%2E')
  for (const id of ids) assert.deepEqual([(await send('POST', `/tenants/${path(id)}`)).status, id], [201, id])
  for (const id of ids) assert.equal((await send('PUT', `/tenants/${path(id)}/keys/${path(id)}`, { value: id })).status, 204, id)
  for (const id of ids) {
    assert.deepEqual((await send('GET', `/tenants/${path(id)}/keys`)).body, { keys: [id], next: null })
    assert.deepEqual((await send('GET', `/tenants/${path(id)}/keys/${path(id)}`)).body, { value: id, encoding: 'text' })
  }
  const { body: { pods } } = await send('GET', '/pods')
  assert.deepEqual(pods.flatMap((pod: { tenants: string[] }) => pod.tenants).sort(), [...ids].sort())
  for (const id of ids) assert.equal((await send('DELETE', `/tenants/${path(id)}`)).status, 204, id)
  const { rows } = await scene.database.query('SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)', [`${scene.schemaPrefix}_t_`])
  assert.deepEqual(rows, [])
})

test('a tenant that does not exist leaves no binding, however the request was refused', async t => {
  const scene = new Scene(t)
  await scene.startPod('pod-1')
  const { send } = await scene.startCoordinator()
  const requests = [
    ['GET', '/keys/k'], ['GET', '/keys'], ['GET', '/keys?limit=0'], ['GET', '/keys/a%00b'], ['PUT', '/keys/k', { value: 'v' }], ['PUT', '/keys/k', '{'], ['PUT', '/keys/k', { value: 1 }],
    ['PUT', '/keys/k', { value: 'x'.repeat(2 ** 20 + 1) }], ['DELETE', '/keys/k'], ['DELETE', ''], ['POST', '/transactions'], ['POST', '/transactions', { isolationLevel: 'x' }]
  ] as const
  for (const [i, [method, rest, body]] of requests.entries()) {
    const { status } = await send(method, `/tenants/none-${i}${rest}`, body)
    assert.ok(status >= 400 && status < 500, String(status))
    assert.deepEqual([i, await scene.boundTo(`none-${i}`)], [i, []])
  }
  assert.deepEqual((await send('GET', '/pods')).body.pods[0].tenants, [])
})

test('a tenant that is created while others ask for it in vain is bound at the end, and there', async t => {
  const scene = new Scene(t)
  await Promise.all([scene.startPod('pod-1'), scene.startPod('pod-2')])
  const coordinators = [await scene.startCoordinator({ CACHE_TTL: 5000 }), await scene.startCoordinator({ CACHE_TTL: 0 })]
  for (let round = 0; round < 10; round++) {
    const id = `tenant-${round}`
    const replies = await Promise.all(Array.from({ length: 12 }, async (_, i) => (
      await coordinators[i % 2]?.send(i % 4 === 3 ? 'POST' : 'GET', `/tenants/${id}${i % 4 === 3 ? '' : '/keys/k'}`)
    )))
    assert.equal(replies.filter(reply => reply?.status === 201).length, 1)
    assert.equal((await coordinators[0]?.send('PUT', `/tenants/${id}/keys/k`, { value: id }))?.status, 204)
    assert.equal((await coordinators[1]?.send('GET', `/tenants/${id}/keys/k`))?.body.value, id)
    assert.equal((await scene.boundTo(id)).length, 1)
  }
})

test('a coordinator that remembers a binding given back creates through it, and the tenant is bound again', async t => {
  const scene = new Scene(t)
  await scene.startPod('pod-1')
  const { send } = await scene.startCoordinator({ CACHE_TTL: 60_000 })
  assert.equal((await send('GET', '/tenants/late/keys')).status, 404)
  assert.deepEqual(await scene.boundTo('late'), [])
  assert.equal((await send('POST', '/tenants/late')).status, 201)
  assert.deepEqual(await scene.boundTo('late'), ['pod-1'])
})

test('Valkey loses its data: every route finds the tenant again, a delete too', async t => {
  const scene = new Scene(t)
  await scene.startPod('pod-1', { HEARTBEAT: 100 })
  const { send } = await scene.startCoordinator({ CACHE_TTL: 0 })
  await send('POST', '/tenants/kept')
  await send('PUT', '/tenants/kept/keys/k', { value: 'v' })
  const client = new Redis(scene.redisUrl)
  atClose(t, () => client.disconnect())
  const forget = async (): Promise<void> => {
    for await (const keys of client.scanStream({ match: `${scene.keyPrefix}:*`, count: 1000 })) if (keys.length > 0) await client.unlink(...keys)
    await until(async () => (await scene.registry.listLiveMembers()).length === 1, 'the pod is back')
  }
  for (const [method, rest, body, status] of [['GET', '/keys/k', undefined, 200], ['PUT', '/keys/k', { value: 'w' }, 204], ['POST', '', undefined, 200], ['POST', '/transactions', undefined, 201], ['DELETE', '', undefined, 204]] as const) {
    await forget()
    assert.deepEqual([method, rest, (await send(method, `/tenants/kept${rest}`, body)).status], [method, rest, status])
  }
  assert.equal((await send('GET', '/tenants/kept/keys/k')).status, 404)
})

test('a deleted tenant is gone for a pod that has served it, and empty when it comes back', async t => {
  const scene = new Scene(t)
  const [first, second] = [await scene.startPod('pod-1'), await scene.startPod('pod-2')]
  for (let round = 0; round < 3; round++) {
    assert.equal((await first.send('POST', '/tenants/acme')).status, 201)
    assert.equal((await second.send('POST', '/tenants/acme')).status, 200)
    for (const pod of [first, second]) assert.equal((await pod.send('PUT', '/tenants/acme/keys/k', { value: pod.memberId })).status, 204)
    assert.equal((await second.send('DELETE', '/tenants/acme')).status, 204)
    for (const pod of [first, second]) {
      const replies = [await pod.send('GET', '/tenants/acme/keys/k'), await pod.send('PUT', '/tenants/acme/keys/k', { value: 'v' }), await pod.send('DELETE', '/tenants/acme')]
      assert.deepEqual(replies.map(reply => reply.body?.code), Array(3).fill('STORAGE_TENANT_NOT_FOUND'))
    }
    assert.equal((await second.send('POST', '/tenants/acme')).status, 201)
    for (const pod of [first, second]) assert.deepEqual((await pod.send('GET', '/tenants/acme/keys')).body, { keys: [], next: null })
    assert.equal((await first.send('DELETE', '/tenants/acme')).status, 204)
  }
})

test('writes that run while a tenant is deleted and made anew, on two pods: 204 or 404, never another answer', async t => {
  const scene = new Scene(t)
  const pods = [await scene.startPod('pod-1', { POOL_MAX: 4 }), await scene.startPod('pod-2', { POOL_MAX: 4 })]
  const statuses = new Map<number, number>()
  const load = { isOver: false }
  const write = async (pod: typeof pods[number], i: number): Promise<void> => {
    while (!load.isOver) {
      const { status } = i % 3 === 0 ? await pod.send('GET', '/tenants/acme/keys') : await pod.send('PUT', `/tenants/acme/keys/k${i}`, { value: 'x'.repeat(1000) })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const writers = [0, 1, 2, 3, 4, 5, 6, 7].map(i => write(pods[i % 2] as typeof pods[number], i))
  for (let round = 0; round < 8; round++) {
    assert.equal((await pods[0]?.send('POST', '/tenants/acme'))?.status, 201)
    const before = statuses.get(204) ?? 0
    await until(() => (statuses.get(204) ?? 0) > before + 10, 'writes are made')
    assert.equal((await pods[1]?.send('DELETE', '/tenants/acme'))?.status, 204)
  }
  load.isOver = true
  await Promise.all(writers)
  for (const status of statuses.keys()) assert.ok([200, 204, 404].includes(status), `${status}: ${JSON.stringify([...statuses])}`)
})

test('a client that leaves while its write waits for a connection: nothing is written', async t => {
  const scene = new Scene(t)
  const pod = await scene.startPod('pod-1', { POOL_MAX: 1, TRANSACTION_IDLE: 60_000, CONNECT_TIMEOUT: 60_000, FAN_OUT_WAIT: 20 })
  await pod.send('POST', '/tenants/acme')
  const { body: { lockId } } = await pod.send('POST', '/tenants/acme/transactions')
  const address = pod.membership.member.address
  await new Promise<void>(resolve => {
    const sent = startRequest(`${address}/tenants/acme/keys/k`, { method: 'PUT', headers: { 'content-type': 'application/json' } })
    sent.on('error', () => resolve())
    sent.end(JSON.stringify({ value: 'given up' }))
    const leave = setInterval(() => {
      if (!pod.pools.look('acme').wasSaturated) return // it has not been waiting in the queue of the pool for FAN_OUT_WAIT yet
      clearInterval(leave)
      sent.destroy()
    }, 20)
  })
  await pod.send('POST', `/transactions/${lockId}/rollback`)
  // Behind it in the queue.
  assert.equal((await pod.send('PUT', '/tenants/acme/keys/other', { value: 'v' })).status, 204)
  assert.deepEqual((await pod.send('GET', '/tenants/acme/keys')).body.keys, ['other'])
})
