import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { findPostgresFolder } from '../services/postgres-binaries.ts'
import { findConnectObstacle, withConnection } from '../services/postgres-client.ts'
import { query, startOwnPostgres } from './support/own-postgres.ts'
import { isThere, listFolders, makeFolder, root, until } from './support/wrapper.ts'

const needsPostgres = { skip: findPostgresFolder(process.env) === undefined && 'postgres and initdb are not installed' }

for (const mode of ['immediate', 'fast'] as const) {
  test(`startOwnPostgres: what was acknowledged is there after stop('${mode}') and start, at the same URL`, needsPostgres, async (t) => {
    const own = await startOwnPostgres(t)
    const { url, pid } = own
    await query(url, 'CREATE TABLE ledger (number int PRIMARY KEY)')
    for (let number = 1; number <= 20; number++) await query(url, 'INSERT INTO ledger VALUES ($1)', [number])
    await own.stop(mode)
    assert.equal(isThere(pid), false)
    assert.match(await findConnectObstacle(url) ?? '', /ECONNREFUSED/)
    await own.start()
    assert.equal(own.url, url)
    assert.notEqual(own.pid, pid)
    assert.deepEqual(await query(url, 'SELECT count(*)::int AS count, sum(number)::int AS sum FROM ledger'), [{ count: 20, sum: 210 }])
  })
}

test('startOwnPostgres: start says so when its port was taken meanwhile', needsPostgres, async (t) => {
  const own = await startOwnPostgres(t)
  await own.stop('fast')
  const taker = createServer().listen(own.port, '127.0.0.1')
  await once(taker, 'listening')
  t.after(() => taker.close())
  await assert.rejects(own.start(), /could not bind.*in use/)
})

test('startOwnPostgres: frozen, neither old nor new connections get an answer; thawed, they do; frozen, it can be stopped', needsPostgres, async (t) => {
  const own = await startOwnPostgres(t)
  await withConnection({ connectionString: own.url }, async (client) => {
    own.freeze()
    let isAnswered = false
    const late = client.query('SELECT 1 AS one').finally(() => { isAnswered = true })
    assert.match(await findConnectObstacle(own.url, 500) ?? '', /timeout/)
    assert.equal(isAnswered, false)
    own.thaw()
    assert.deepEqual((await late).rows, [{ one: 1 }])
  }, 30_000)
  assert.equal(await findConnectObstacle(own.url), undefined)
  own.freeze()
  await own.stop('immediate')
  await own.start()
  assert.equal(await findConnectObstacle(own.url), undefined)
})

test('startOwnPostgres: gone, though frozen, when the process of its test is killed', needsPostgres, async (t) => {
  const folder = makeFolder(t)
  const file = join(root, 'e2e/support/own-postgres-process.ts')
  // Not as a part of this run: its reports would not be lines.
  const env = { ...process.env, TMPDIR: folder, NODE_TEST_CONTEXT: undefined }
  const owner = spawn(process.execPath, ['--import', 'tsx', file], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => owner.kill('SIGKILL'))
  let output = ''
  owner.stdout.setEncoding('utf8').on('data', (chunk: string) => { output += chunk })
  await until(() => /^\[.*\]$/m.test(output), 'it lists the processes of its PostgreSQL')
  const ids = JSON.parse(/^\[.*\]$/m.exec(output)?.[0] ?? '') as number[]
  assert.ok(ids.length > 3, output)
  owner.kill('SIGKILL')
  await until(() => !ids.some(isThere), 'all of its PostgreSQL is gone')
  await until(() => listFolders({ folder }, 'postgres').length === 0, 'the folder of PostgreSQL is gone')
})
