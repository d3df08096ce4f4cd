import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { findPostgresFolder } from '../services/postgres-binaries.ts'
import { findConnectObstacle } from '../services/postgres-client.ts'
import { askStore } from '../services/resp.ts'
import { query, startOwnPostgres } from './support/own-postgres.ts'
import { readParent } from './support/process-family.ts'
import { buildCommand, isThere, killIfThere, listFolders, makeFolder, root, startWrapper as startScript, until } from './support/wrapper.ts'
import type { Run } from './support/wrapper.ts'

const needsPostgres = { skip: findPostgresFolder(process.env) === undefined && 'postgres and initdb are not installed' }
const developmentUrl = 'postgresql://storage:storage@127.0.0.1:15432/storage'
const nowhere = join(root, 'no-such-folder')
const readPid = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid"

function command (rest: string): string[] {
  return buildCommand('PG_URL', rest)
}
const stayForEver = command('setInterval(() => {}, 1000)')

function startWrapper (t: TestContext, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Run {
  return startScript(t, 'with-postgres.ts', args, { COORDINATOR_POSTGRES: 'local', ...environment })
}

async function answers (url: string): Promise<boolean> {
  return await findConnectObstacle(url) === undefined
}

async function assertNothingLeft (run: Run, url: string): Promise<void> {
  await until(async () => !await answers(url), 'PostgreSQL is gone')
  await until(() => listFolders(run, 'postgres').length === 0, 'the folder of PostgreSQL is gone')
}

test('with-postgres: the command gets its arguments, a database and a clean standard output', needsPostgres, async (t) => {
  const run = startWrapper(t, ['--', ...command(''), '--json', '', 'two words', '--', '$HOME', '*'], { PG_URL: 'postgresql://127.0.0.1:1/none' })
  assert.equal(await run.closed, 0, run.errors())
  const { url, args } = await run.readReport()
  assert.deepEqual(args, ['--json', '', 'two words', '--', '$HOME', '*'])
  assert.match(url, /^postgresql:\/\/storage:storage@127\.0\.0\.1:\d+\/storage$/)
  assert.equal(run.output().split('\n').length, 2)
  assert.match(run.errors(), /^postgres: postgresql:\/\/127\.0\.0\.1:\d+\/storage \(private PostgreSQL \d+\.\d+\)\n$/)
  // Not "within": the wrapper ends after its PostgreSQL.
  assert.equal(await answers(url), false)
  assert.deepEqual(listFolders(run, 'postgres'), [])
})

test('with-postgres: the database is empty, in UTF-8, asks for the password and answers for as long as the command runs', needsPostgres, async (t) => {
  // A setting that would reach a cluster, or the client, from outside.
  const run = startWrapper(t, ['--', ...stayForEver], { PGSSLMODE: 'require', PGDATA: nowhere, LC_ALL: 'xx_XX.latin1' })
  const { url, pid } = await run.readReport()
  const [settings] = await query(url, `
    SELECT current_user AS user, current_database() AS database, current_setting('server_encoding') AS encoding,
           current_setting('max_connections') AS connections, current_setting('listen_addresses') AS addresses,
           current_setting('unix_socket_directories') AS sockets, (SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public') AS tables`)
  assert.deepEqual(settings, { user: 'storage', database: 'storage', encoding: 'UTF8', connections: '300', addresses: '127.0.0.1', sockets: '', tables: 0 })
  assert.match(await findConnectObstacle(url.replace('storage:storage@', 'storage:wrong@')) ?? '', /password authentication failed/)
  assert.equal(listFolders(run, 'postgres').length, 1)
  killIfThere(pid)
  assert.equal(await run.closed, 137)
  assert.equal(await answers(url), false)
  assert.deepEqual(listFolders(run, 'postgres'), [])
})

test('with-postgres: the exit code of a failed command is kept and PostgreSQL is stopped', needsPostgres, async (t) => {
  const run = startWrapper(t, ['--', ...command('process.exit(7)')])
  assert.equal(await run.closed, 7)
  await assertNothingLeft(run, (await run.readReport()).url)
})

for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]] as const) {
  test(`with-postgres: ${signal} to the wrapper ends the command, then PostgreSQL, with exit code ${code}`, needsPostgres, async (t) => {
    const run = startWrapper(t, ['--', ...stayForEver])
    const { url } = await run.readReport()
    run.wrapper.kill(signal)
    assert.equal(await run.closed, code)
    await assertNothingLeft(run, url)
  })
}

test('with-postgres: SIGKILL of the wrapper, which it cannot notice, stops PostgreSQL too', needsPostgres, async (t) => {
  const run = startWrapper(t, ['--', ...stayForEver])
  const { url, pid } = await run.readReport()
  run.wrapper.kill('SIGKILL')
  await assertNothingLeft(run, url)
  killIfThere(pid)
  await run.closed
})

for (const [signal, code] of [['SIGTERM', 143], ['SIGKILL', null]] as const) {
  test(`with-postgres: ${signal} while PostgreSQL is being made leaves nothing and runs no command`, needsPostgres, async (t) => {
    const run = startWrapper(t, ['--', ...command('')])
    await until(() => listFolders(run, 'postgres').length === 1, 'the folder is there')
    run.wrapper.kill(signal)
    assert.equal(await run.closed, code)
    await until(() => listFolders(run, 'postgres').length === 0, 'the folder of PostgreSQL is gone')
    assert.equal(run.output(), '')
  })
}

test('with-postgres: SIGKILL of the keeper stops PostgreSQL, says so and leaves nothing', needsPostgres, async (t) => {
  const run = startWrapper(t, ['--', ...stayForEver])
  const { url, pid } = await run.readReport()
  const [row] = await query<{ pid: number }>(url, readPid)
  killIfThere(readParent(row?.pid ?? 0) ?? 0)
  await until(() => /is gone while in use: it ended with its keeper was killed/.test(run.errors()), 'the loss is told')
  await assertNothingLeft(run, url)
  assert.equal(isThere(pid), true)
  run.wrapper.kill('SIGTERM')
  assert.equal(await run.closed, 143)
})

test('with-postgres: two at once get two', needsPostgres, async (t) => {
  const runs = [startWrapper(t, ['--', ...stayForEver]), startWrapper(t, ['--', ...stayForEver])] as const
  const [first, second] = await Promise.all([runs[0].readReport(), runs[1].readReport()])
  await query(first.url, 'CREATE TABLE mark ()')
  assert.deepEqual(await query(second.url, "SELECT to_regclass('mark') AS mark"), [{ mark: null }])
  for (const run of runs) run.wrapper.kill('SIGTERM')
  assert.deepEqual(await Promise.all(runs.map(async (run) => run.closed)), [143, 143])
})

test('with-postgres: inside with-store the command gets both, and both are gone after a SIGTERM to the outer one', needsPostgres, async (t) => {
  const report = "const redis = process.env.REDIS_URL; console.log(redis); console.error('ready'); setInterval(() => {}, 1000)"
  const inner = [process.execPath, '--import', 'tsx', 'services/with-postgres.ts', '--', ...command(report)]
  const run = startScript(t, 'with-store.ts', ['--', ...inner], { COORDINATOR_POSTGRES: 'local', REDIS_URL: '' })
  const { url } = await run.readReport()
  await until(() => run.errors().includes('ready'), 'the command is ready')
  const redisUrl = run.output().split('\n')[1] ?? ''
  const store = { host: '127.0.0.1', port: Number(new URL(redisUrl).port) }
  assert.equal(await askStore(store, 'PING'), 'PONG')
  assert.equal(await answers(url), true)
  run.wrapper.kill('SIGTERM')
  assert.equal(await run.closed, 143)
  assert.equal(await askStore(store, 'PING'), null)
  await assertNothingLeft(run, url)
  assert.deepEqual(listFolders(run, 'store'), [])
})

test('with-postgres: PG_URL is preferred, handed on as it is, and its password is not printed', needsPostgres, async (t) => {
  const own = await startOwnPostgres(t)
  await query(own.url, "CREATE ROLE reader LOGIN PASSWORD 'a?b@c'")
  const url = `postgresql://reader:a%3Fb%40c@127.0.0.1:${own.port}/storage?application_name=given`
  const run = startWrapper(t, ['--', ...command('')], { PG_URL: url, COORDINATOR_POSTGRES: '' })
  assert.equal(await run.closed, 0, run.errors())
  assert.equal((await run.readReport()).url, url)
  assert.equal(run.errors(), `postgres: postgresql://127.0.0.1:${own.port}/storage (from PG_URL)\n`)
  // One that was given is not stopped.
  assert.equal(await answers(own.url), true)

  const refused = startWrapper(t, ['--', ...command('')], { PG_URL: url.replace('a%3Fb%40c', 'secret'), COORDINATOR_POSTGRES: '' })
  assert.equal(await refused.closed, 1)
  assert.match(refused.errors(), /^postgres: PG_URL is set, but there is no connection to it: password authentication failed for user "reader"\./)
  assert.equal(refused.output(), '')
  assert.ok(!refused.errors().includes('secret'))
})

for (const [what, url, reason] of [
  ['where nothing answers', 'postgresql://me:secret@127.0.0.1:1/storage', /no connection to it: connect ECONNREFUSED 127\.0\.0\.1:1\./],
  ['that is no URL', 'secret host', /not a URL of PostgreSQL. Expected postgresql:/],
  ['with a bad port', 'postgresql://me:secret@127.0.0.1:x/storage', /not a URL of PostgreSQL. Expected postgresql:/],
  ['of something else', 'redis://me:secret@127.0.0.1:1', /not a URL of PostgreSQL. Expected postgresql:/]
] as const) {
  test(`with-postgres: a PG_URL ${what} is exit code 1 and says why`, async (t) => {
    const run = startWrapper(t, ['--', ...command('')], { PG_URL: url, COORDINATOR_POSTGRES: '' })
    assert.equal(await run.closed, 1)
    assert.match(run.errors(), reason)
    assert.ok(!run.errors().includes('secret'), run.errors())
    assert.equal(run.output(), '')
  })
}

test('with-postgres: a TMPDIR that only root can enter is no obstacle', {
  skip: needsPostgres.skip || (process.getuid?.() !== 0 && 'only root runs PostgreSQL as somebody else')
}, async (t) => {
  const closed = makeFolder(t)
  chmodSync(closed, 0o700)
  const run = startWrapper(t, ['--', ...command('')], { TMPDIR: closed })
  assert.equal(await run.closed, 0, run.errors())
})

test('with-postgres: no PostgreSQL to be had is exit code 1 and a list of choices', async (t) => {
  if (await answers(developmentUrl)) return t.skip('a server answers on 127.0.0.1:15432')
  // No programs, no Docker and no apt-get.
  const run = startWrapper(t, ['--', ...command('')], { PATH: nowhere, COORDINATOR_POSTGRES_BIN: nowhere, PG_URL: '', COORDINATOR_POSTGRES: '' })
  assert.equal(await run.closed, 1)
  assert.equal(run.output(), '')
  for (const choice of ['postgres and initdb', 'COORDINATOR_POSTGRES_BIN', 'Docker Compose', '127.0.0.1:15432', 'PG_URL', 'apt-get']) {
    assert.ok(run.errors().includes(choice), `${choice} is missing in: ${run.errors()}`)
  }
})

test('with-postgres: an unknown COORDINATOR_POSTGRES is refused with what it may be', async (t) => {
  const run = startWrapper(t, ['--', ...command('')], { COORDINATOR_POSTGRES: 'mysql' })
  assert.equal(await run.closed, 1)
  assert.match(run.errors(), /Expected COORDINATOR_POSTGRES to be one of local, compose, got mysql/)
})
