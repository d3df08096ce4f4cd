import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import type { SpawnSyncReturns } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

test('run-tests: runs test files only, keeps the exit code and refuses to run none', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-services-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'support'))
  writeFileSync(join(folder, 'good.test.ts'), "import { test } from 'node:test'\ntest('good' as string, () => {})\n")
  writeFileSync(join(folder, 'bad.test.ts'), "import { test } from 'node:test'\ntest('bad', () => { throw new Error('on purpose') })\n")
  for (const name of ['support/pod.ts', 'support/pod.test.ts', 'other.ts']) writeFileSync(join(folder, name), 'process.exit(9)\n')

  const all = runTests(folder)
  assert.equal(all.status, 1)
  assert.match(all.stdout, /tests 2\b/)
  const good = runTests(folder, 'good')
  assert.equal(good.status, 0, good.stdout)
  assert.match(good.stdout, /pass 1\b/)
  const none = runTests(folder, 'pod')
  assert.equal(none.status, 1)
  assert.match(none.stderr, /No \*\.test\.ts below .* with pod in its path/)
})

function runTests (...args: readonly string[]): SpawnSyncReturns<string> {
  // The runner refuses to run inside a test unless this is unset.
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
  return spawnSync(process.execPath, ['--import', 'tsx', 'services/run-tests.ts', ...args], { cwd: root, env, encoding: 'utf8' })
}
