import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from '../../test/support/store.ts'
import { startProcess } from '../support/processes.ts'

// What the scenarios take for granted of the processes they start.

const ready = "process.stdout.write('{\"ready\":true,\"address\":\"http://127.0.0.1:1\"}\\n')"
const forEver = 'setInterval(() => {}, 1000)'

/** A process under test with a test context of its own, whose end can be looked at. */
function setStage (t: TestContext, code: string, passed = true) {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-e2e-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'process.mjs')
  writeFileSync(file, code)
  const ends: (() => unknown)[] = []
  const told: string[] = []
  const inner = { after: (end: () => unknown) => ends.push(end), diagnostic: (text: string) => told.push(text), passed } as unknown as TestContext
  const end = async (): Promise<void> => { for (const each of ends) await each() }
  t.after(() => end().catch(() => {}))
  return { file, told, end, start: async () => await startProcess(inner, { name: 'it', file, env: {} }) }
}

test('processes: one that does not start is reported with what it printed', async t => {
  const { start, end } = setStage(t, "console.error('no such thing'); process.exit(3)")
  await assert.rejects(start(), /it ended by itself \(exit code 3\) before it was ready; it printed "" and:\nno such thing/)
  await assert.rejects(end())
})

test('processes: one that says something else than that it is ready is reported', async t => {
  const { start } = setStage(t, `console.log('{"ready":false}'); ${forEver}`)
  await assert.rejects(start(), /Expected the ready line of it, got \{"ready":false\}/)
})

test('processes: one that ends by itself fails the test, with what it printed', async t => {
  const { start, end, told } = setStage(t, `${ready}; setTimeout(() => { console.error('oh'); process.exit(0) }, 50)`)
  const started = await start()
  await until(() => started.crash !== undefined, 'it ended')
  await assert.rejects(end(), /it ended by itself \(exit code 0\)/)
  assert.deepEqual(told, ['it printed:\noh\n'])
})

test('processes: one that runs is killed after the test, and its stderr is printed for a failed test only', async t => {
  for (const passed of [true, false]) {
    const { start, end, told } = setStage(t, `console.error('all well'); ${ready}; ${forEver}`, passed)
    const started = await start()
    await until(() => started.stderr !== '', 'it printed')
    await end()
    assert.equal(isThere(started.pid), false)
    assert.deepEqual(told, passed ? [] : ['it printed:\nall well\n'])
  }
})

test('processes: one that is paused is killed as well', async t => {
  const { start, end } = setStage(t, `${ready}; ${forEver}`)
  const started = await start()
  await started.pause()
  await end()
  assert.equal(isThere(started.pid), false)
})

test('processes: terminate() fails when the exit code is not 0', async t => {
  const good = await setStage(t, `process.on('SIGTERM', () => process.exit(0)); ${ready}; ${forEver}`).start()
  assert.equal((await good.terminate()).code, 0)
  assert.equal(good.state, 'gone')
  const bad = await setStage(t, `${ready}; ${forEver}`).start()
  await assert.rejects(bad.terminate(), /Expected it to exit with 0 after SIGTERM, got SIGTERM/)
})

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(`processes: a test file that ends with ${signal} leaves none behind`, async t => {
    const { file } = setStage(t, `process.once('disconnect', () => process.exit()); ${ready}; ${forEver}`)
    const support = fileURLToPath(new URL('../support/processes.ts', import.meta.url))
    const script = `
      const { startProcess } = await import(${JSON.stringify(support)})
      const started = await startProcess({ after () {}, diagnostic () {} }, { name: 'it', file: ${JSON.stringify(file)}, env: {} })
      console.log(started.pid)`
    const testFile = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => testFile.kill('SIGKILL'))
    const [pid] = await once(testFile.stdout.setEncoding('utf8'), 'data')
    assert.equal(isThere(Number(pid)), true)
    testFile.kill(signal)
    await until(() => !isThere(Number(pid)), 'the process is gone')
  })
}

function isThere (pid: number): boolean {
  try {
    process.kill(pid, 0)
    // In a container nobody may reap an orphan: it has ended, yet its number stays.
    return process.platform !== 'linux' || !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
