import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { askStore } from '../services/resp.ts'
import { buildCommand, isThere, killIfThere, listFolders, makeFolder, root, startWrapper as startScript, until } from './support/wrapper.ts'
import type { Report, Run } from './support/wrapper.ts'

const binary = ['valkey-server', 'redis-server'].find((name) => spawnSync(name, ['--version']).status === 0)
const needsBinary = { skip: binary === undefined && 'neither valkey-server nor redis-server is on the PATH' }

function command (rest: string): string[] {
  return buildCommand('REDIS_URL', rest)
}
const stayForEver = command('setInterval(() => {}, 1000)')

function startWrapper (t: TestContext, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Run {
  return startScript(t, 'with-store.ts', args, { COORDINATOR_STORE: binary, ...environment })
}

async function answers (url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return await askStore({ host: hostname, port: Number(port) }, 'PING') === 'PONG'
}

async function assertNothingLeft (run: Run, url: string): Promise<void> {
  await until(async () => !await answers(url), 'the store is gone')
  await until(() => listFolders(run, 'store').length === 0, 'the folder of the store is gone')
}

test('with-store: the command gets its arguments, a store and a clean standard output', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', ...command(''), '--json', '', 'two words', '--', '$HOME', '*'], { REDIS_URL: 'redis://127.0.0.1:1' })
  assert.equal(await run.closed, 0)
  const { url, args } = await run.readReport()
  assert.deepEqual(args, ['--json', '', 'two words', '--', '$HOME', '*'])
  assert.match(url, /^redis:\/\/127\.0\.0\.1:\d+$/)
  assert.equal(run.output().split('\n').length, 2)
  assert.equal(run.errors(), `store: ${url} (private ${binary})\n`)
  // Not "within": the wrapper ends after its store.
  assert.equal(await answers(url), false)
  assert.deepEqual(listFolders(run, 'store'), [])
})

test('with-store: the store answers for as long as the command runs', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', ...stayForEver])
  const { url, pid } = await run.readReport()
  assert.equal(await answers(url), true)
  assert.equal(listFolders(run, 'store').length, 1)
  killIfThere(pid)
  await run.closed
  assert.equal(await answers(url), false)
})

test('with-store: the exit code of a failed command is kept and the store is stopped', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', ...command('process.exit(7)')])
  assert.equal(await run.closed, 7)
  await assertNothingLeft(run, (await run.readReport()).url)
})

test('with-store: a command that crashes by a signal gives 128 + signal and the store is stopped', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', ...command('process.kill(process.pid, "SIGKILL")')])
  assert.equal(await run.closed, 137)
  await assertNothingLeft(run, (await run.readReport()).url)
})

test('with-store: a command that does not exist gives 127 and the store is stopped', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', 'no-such-command-here'])
  assert.equal(await run.closed, 127)
  assert.match(run.errors(), /no-such-command-here: .*ENOENT/)
  const url = /redis:\S+/.exec(run.errors())?.[0] ?? ''
  await assertNothingLeft(run, url)
})

for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]] as const) {
  test(`with-store: ${signal} to the wrapper ends the command, then the store, with exit code ${code}`, needsBinary, async (t) => {
    const run = startWrapper(t, ['--', ...stayForEver])
    const { url } = await run.readReport()
    run.wrapper.kill(signal)
    assert.equal(await run.closed, code)
    await assertNothingLeft(run, url)
  })
}

test('with-store: a command that cleans up on SIGINT still has its store, and its exit code is kept', needsBinary, async (t) => {
  const cleanUp = `
    const keepAlive = setInterval(() => {}, 1000)
    process.on('SIGINT', () => {
      const { hostname, port } = new URL(url)
      const socket = require('node:net').connect(port, hostname, () => socket.write('PING\\r\\n'))
      socket.on('data', (reply) => { console.log(String(reply).trim()); process.exit(5) })
      socket.on('error', () => process.exit(6))
    })
    console.log('ready')`
  const run = startWrapper(t, ['--', ...command(cleanUp)])
  await until(() => run.output().includes('ready'), 'the command handles SIGINT')
  run.wrapper.kill('SIGINT')
  assert.equal(await run.closed, 5)
  assert.match(run.output(), /\+PONG\n$/)
  await assertNothingLeft(run, (await run.readReport()).url)
})

test('with-store: SIGKILL of the wrapper, which it cannot notice, stops the store too', needsBinary, async (t) => {
  const run = startWrapper(t, ['--', ...stayForEver])
  const { url, pid } = await run.readReport()
  run.wrapper.kill('SIGKILL')
  await assertNothingLeft(run, url)
  killIfThere(pid)
  await run.closed
})

for (const victim of ['npm', 'its shell'] as const) {
  test(`with-store: the end of ${victim} alone, as by kill, stops the command and the store`, needsBinary, async (t) => {
    const file = join(makeFolder(t), 'output')
    writeFileSync(file, '')
    // `wait` keeps the shells between, as some shells do with the last command of a script too.
    const inner = 'echo $$; "$0" --import tsx services/with-store.ts -- "$@" & wait'
    const outer = `sh -c '${inner}' "$0" "$@" & wait`
    const env = { ...process.env, COORDINATOR_STORE: binary, npm_lifecycle_event: 'test' }
    const out = openSync(file, 'w')
    const npm = spawn('sh', ['-c', outer, process.execPath, ...stayForEver], { cwd: root, env, stdio: ['ignore', out, 'ignore'] })
    closeSync(out)
    const lines = (): string[] => readFileSync(file, 'utf8').split('\n')
    await until(() => lines().length === 3, 'the command prints its report')
    const { url, pid } = JSON.parse(lines()[1] ?? '') as Report
    t.after(() => killIfThere(pid))
    const shell = Number(lines()[0])
    t.after(() => killIfThere(shell))
    process.kill(victim === 'npm' ? npm.pid ?? 0 : shell, 'SIGKILL')
    await until(async () => !await answers(url), 'the store is gone')
    await until(() => !isThere(pid), 'the command is gone')
    await until(() => npm.exitCode !== null || npm.signalCode !== null, 'npm is gone')
  })
}

test('with-store: six at once get six stores', needsBinary, async (t) => {
  const runs = Array.from({ length: 6 }, () => startWrapper(t, ['--', ...stayForEver]))
  const reports = await Promise.all(runs.map(async (run) => run.readReport()))
  assert.equal(new Set(reports.map((report) => report.url)).size, 6)
  for (const run of runs) run.wrapper.kill('SIGTERM')
  await Promise.all(runs.map(async (run) => run.closed))
})

test('with-store: REDIS_URL is preferred, handed on as it is, and its password is not printed', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const url = `redis://:secret@127.0.0.1:${port}/3`
  const run = startWrapper(t, ['--', ...command('')], { REDIS_URL: url, COORDINATOR_STORE: '' })
  assert.equal(await run.closed, 0)
  assert.equal((await run.readReport()).url, url)
  assert.equal(run.errors(), `store: redis://127.0.0.1:${port}/3 (from REDIS_URL)\n`)
})

test('with-store: no store to be had is exit code 1 and a list of choices', async (t) => {
  if (await answers('redis://127.0.0.1:6390')) return t.skip('a server answers on 127.0.0.1:6390')
  // No binary, no Docker and no apt-get.
  const run = startWrapper(t, ['--', ...command('')], { PATH: join(root, 'no-such-folder'), REDIS_URL: '', COORDINATOR_STORE: '' })
  assert.equal(await run.closed, 1)
  assert.equal(run.output(), '')
  for (const choice of ['valkey-server', 'redis-server', 'Docker Compose', '127.0.0.1:6390', 'REDIS_URL', 'apt-get']) {
    assert.ok(run.errors().includes(choice), `${choice} is missing in: ${run.errors()}`)
  }
})

test('with-store: an unknown COORDINATOR_STORE is refused with what it may be', async (t) => {
  const run = startWrapper(t, ['--', ...command('')], { COORDINATOR_STORE: 'memcached' })
  assert.equal(await run.closed, 1)
  assert.match(run.errors(), /Expected COORDINATOR_STORE to be one of valkey-server, redis-server, compose, got memcached/)
})
