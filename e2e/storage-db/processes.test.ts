import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startOwnStore } from '../../test/support/own-store.ts'
import { until } from '../../test/support/store.ts'
import { Client } from '../support/client.ts'
import type { Reply } from '../support/client.ts'
import { startOwnPostgres } from '../support/own-postgres.ts'
import { startProcess } from '../support/processes.ts'
import type { TestProcess } from '../support/processes.ts'
import { atClose } from '../support/closing.ts'
import { Scene } from './support/scene.ts'

type Environment = Readonly<Record<string, string | number>>

async function startPod (t: TestContext, scene: Scene, memberId: string, env: Environment = {}): Promise<TestProcess> {
  return await startProcess(t, { name: memberId, file: entry('pod'), env: scene.environment(memberId, env) })
}

async function startCoordinator (t: TestContext, scene: Scene, env: Environment = {}): Promise<TestProcess> {
  return await startProcess(t, { name: 'coordinator', file: entry('coordinator'), env: scene.environment('none', env) })
}

function entry (name: string): string {
  return fileURLToPath(new URL(`../../examples/storage-db/dist/${name}.js`, import.meta.url))
}

function openClient (t: TestContext, timeout = 30_000): Client {
  const client = new Client(timeout)
  atClose(t, () => client.close())
  return client
}

const codeOf = ({ body }: Reply): unknown => (body as { code?: unknown } | undefined)?.code

test('a pod that was paused makes no write, no delete and no commit that was given up meanwhile', async t => {
  const scene = new Scene(t)
  const pod = await startPod(t, scene, 'pod-1', { TTL: 60, TRANSACTION_IDLE: 60_000 })
  const { address } = pod
  const [client, impatient] = [openClient(t), openClient(t, 500)]
  await client.send('POST', `${address}/tenants/acme`)
  await client.send('PUT', `${address}/tenants/acme/keys/k`, { value: 'old' })
  const begun = await client.send('POST', `${address}/tenants/acme/transactions`)
  const { lockId } = begun.body as { lockId: string }
  await client.send('PUT', `${address}/transactions/${lockId}/keys/in`, { value: 'uncommitted' })
  await pod.pause()
  const late = await Promise.all([
    impatient.send('PUT', `${address}/tenants/acme/keys/k`, { value: 'late' }),
    impatient.send('PUT', `${address}/tenants/acme/keys/new`, { value: 'late' }),
    impatient.send('DELETE', `${address}/tenants/acme/keys/k`),
    impatient.send('POST', `${address}/transactions/${lockId}/commit`),
    impatient.send('DELETE', `${address}/tenants/acme`),
    impatient.send('POST', `${address}/tenants/late`)
  ])
  assert.deepEqual(late.map(reply => reply.status), Array(6).fill('none'))
  pod.resume()
  // What was given up came first: by the time these are answered it has been decided on.
  for (let i = 0; i < 3; i++) assert.deepEqual((await client.send('GET', `${address}/tenants/acme/keys/k`)).body, { value: 'old', encoding: 'text' })
  assert.deepEqual((await client.send('GET', `${address}/tenants/acme/keys`)).body, { keys: ['k'], next: null })
  assert.equal((await client.send('GET', `${address}/tenants/late/keys`)).status, 404)
  assert.equal((await client.send('POST', `${address}/transactions/${lockId}/commit`)).status, 204)
})

test('PostgreSQL crashes and comes back: the first read and the first write succeed, what must not be repeated is not', async t => {
  const client = openClient(t) // before the services: what is opened first is closed behind them
  const postgres = await startOwnPostgres(t)
  const scene = new Scene(t, { pgUrl: postgres.url })
  const pod = await startPod(t, scene, 'pod-1', { POOL_MAX: 3 })
  const { address } = pod
  await client.send('POST', `${address}/tenants/acme`)
  const put = (value: string): Promise<Reply> => client.send('PUT', `${address}/tenants/acme/keys/k`, { value })
  await Promise.all(Array.from({ length: 6 }, () => put('old')))
  const { lockId } = (await client.send('POST', `${address}/tenants/acme/transactions`)).body as { lockId: string }
  await postgres.stop('immediate')
  const away = [await put('away'), await client.send('GET', `${address}/tenants/acme/keys/k`), await client.send('DELETE', `${address}/tenants/acme/keys/k`), await client.send('POST', `${address}/tenants/other`)]
  for (const reply of away) assert.deepEqual([reply.status, Number(reply.headers['retry-after']) > 0, codeOf(reply)], [503, true, 'STORAGE_DATABASE_UNAVAILABLE'])
  await postgres.start()
  assert.equal((await put('new')).status, 204)
  assert.deepEqual((await client.send('GET', `${address}/tenants/acme/keys/k`)).body, { value: 'new', encoding: 'text' })
  assert.equal((await client.send('POST', `${address}/transactions/${lockId}/commit`)).status, 404)
  assert.equal((await client.send('POST', `${address}/tenants/acme/transactions`)).status, 201)
  assert.equal((await pod.terminate()).code, 0)
})

test('PostgreSQL freezes: every request is answered in the end, and after the thaw all is well', async t => {
  const client = openClient(t)
  const postgres = await startOwnPostgres(t)
  const scene = new Scene(t, { pgUrl: postgres.url })
  const pod = await startPod(t, scene, 'pod-1', { POOL_MAX: 3, CONNECT_TIMEOUT: 500, STATEMENT_TIMEOUT: 500 })
  const { address } = pod
  await client.send('POST', `${address}/tenants/acme`)
  const { lockId } = (await client.send('POST', `${address}/tenants/acme/transactions`)).body as { lockId: string }
  postgres.freeze()
  const replies = await Promise.all([
    client.send('PUT', `${address}/tenants/acme/keys/k`, { value: 'v' }),
    client.send('GET', `${address}/tenants/acme/keys`),
    client.send('DELETE', `${address}/tenants/acme/keys/k`),
    client.send('POST', `${address}/tenants/other`),
    client.send('POST', `${address}/tenants/acme/transactions`),
    client.send('POST', `${address}/transactions/${lockId}/commit`)
  ])
  assert.deepEqual(replies.map(reply => reply.status), Array(6).fill(503))
  assert.equal(codeOf(replies[5] as Reply), 'STORAGE_COMMIT_OUTCOME_UNKNOWN')
  postgres.thaw()
  await until(async () => (await client.send('PUT', `${address}/tenants/acme/keys/k`, { value: 'thawed' })).status === 204, 'writes are made')
  assert.deepEqual((await client.send('GET', `${address}/tenants/acme/keys/k`)).body, { value: 'thawed', encoding: 'text' })
  assert.equal((await pod.terminate()).code, 0)
})

test('a pod stops, with exit code 0, though Valkey and PostgreSQL are frozen; a second signal changes nothing', async t => {
  const client = openClient(t)
  const postgres = await startOwnPostgres(t)
  const store = await startOwnStore(t)
  const scene = new Scene(t, { pgUrl: postgres.url, redisUrl: store.url })
  const pod = await startPod(t, scene, 'pod-1', { DRAIN_TIMEOUT: 500, CONNECT_TIMEOUT: 500, STATEMENT_TIMEOUT: 500 })
  await client.send('POST', `${pod.address}/tenants/acme`)
  await client.send('POST', `${pod.address}/tenants/acme/transactions`)
  const held = client.send('PUT', `${pod.address}/tenants/acme/keys/k`, { value: 'v' })
  postgres.freeze()
  store.freeze()
  const stopped = pod.terminate('SIGINT')
  process.kill(pod.pid, 'SIGTERM')
  assert.equal((await stopped).code, 0)
  assert.ok([204, 503].includes((await held).status as number))
  postgres.thaw()
  store.thaw()
})

test('a pod that stops lets go of its tenants, its locks and its connections; others serve on', async t => {
  const scene = new Scene(t)
  const [first, second] = [await startPod(t, scene, 'pod-1', { DRAIN_TIMEOUT: 60_000 }), await startPod(t, scene, 'pod-2')]
  const coordinator = await startCoordinator(t, scene)
  const client = openClient(t)
  const ids = Array.from({ length: 10 }, (_, i) => `tenant-${i}`)
  for (const id of ids) {
    assert.equal((await client.send('POST', `${coordinator.address}/tenants/${id}`)).status, 201)
    assert.equal((await client.send('PUT', `${coordinator.address}/tenants/${id}/keys/k`, { value: id })).status, 204)
  }
  const ofFirst = await scene.registry.listOwned('pod-1')
  assert.ok(ofFirst.length > 0 && ofFirst.length < ids.length)
  const { lockId } = (await client.send('POST', `${coordinator.address}/tenants/${ofFirst[0]}/transactions`)).body as { lockId: string }
  await client.send('PUT', `${coordinator.address}/transactions/${lockId}/keys/in`, { value: 'committed' })
  const stopped = first.terminate()
  await until(async () => (await scene.registry.listLiveMembers()).some(member => member.draining), 'it drains')
  assert.equal((await client.send('POST', `${coordinator.address}/transactions/${lockId}/commit`)).status, 204)
  await stopped
  for (const id of ids) {
    const reply = await client.send('GET', `${coordinator.address}/tenants/${id}/keys/k`)
    assert.deepEqual([reply.body, reply.headers['x-storage-pod']], [{ value: id, encoding: 'text' }, 'pod-2'])
  }
  assert.deepEqual((await client.send('GET', `${coordinator.address}/tenants/${ofFirst[0]}/keys/in`)).body, { value: 'committed', encoding: 'text' })
  const { pods } = (await client.send('GET', `${coordinator.address}/pods`)).body as { pods: Array<{ memberId: string, tenants: string[] }> }
  assert.deepEqual(pods.map(pod => [pod.memberId, pod.tenants]), [['pod-2', ids]])
  assert.equal(await scene.registry.resolveLock(lockId), null)
  await until(async () => await scene.countConnections('pod-1') === 0, 'PostgreSQL sees its connections go')
  await Promise.all([second.terminate(), coordinator.terminate('SIGINT')])
})

test('a pod whose memberId is taken over stops by itself, with exit code 0, and leaves the record of the other alone', async t => {
  const scene = new Scene(t)
  const first = spawn(process.execPath, [entry('pod')], { env: { ...process.env, ...scene.environment('pod-1', { HEARTBEAT: 100 }) }, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  atClose(t, () => first.kill('SIGKILL'))
  const exit = once(first, 'exit')
  await once(first.stdout as Readable, 'data')
  const second = await startPod(t, scene, 'pod-1')
  assert.deepEqual(await exit, [0, null])
  const members = await scene.registry.listLiveMembers()
  assert.deepEqual(members.map(member => [member.memberId, member.address]), [['pod-1', second.address]])
})
