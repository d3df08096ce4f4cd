import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { findFreePort } from '../services/free-port.ts'
import { setScene, storeUrl, until } from './support/store.ts'

const root = new URL('..', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')
const blocks = new Map<string, string>()
let blockCount = 0
for (const [, name = '', code = ''] of readme.matchAll(/<!-- run: (?:with )?(\S+) -->\n```js\n(.*?)```/gs)) {
  blocks.set(name, (blocks.get(name) ?? '') + code)
  blockCount++
}
const entry = new URL('src/index.ts', root).href

test('README: every block of JavaScript is marked to be run here', () => {
  assert.equal([...readme.matchAll(/^```(js|ts|javascript|typescript)$/gm)].length, blockCount)
  assert.deepEqual([...blocks.keys()], ['pod.mjs', 'caller.mjs', 'coordinator.mjs', 'standalone.mjs', 'registry.mjs', 'member.mjs', 'strategy.mjs', 'diagnostics.mjs'])
})

test('README: the caller of the example reaches the pod of the example, which leaves on SIGTERM', async t => {
  const scene = setScene(t)
  const port = await findFreePort()
  const pod = run(t, 'pod.mjs', scene.keyPrefix, port)
  await until(async () => await scene.raw.exists(scene.key('member', 'pod-1')) === 1, 'the pod is live')

  const caller = run(t, 'caller.mjs', scene.keyPrefix, port)

  assert.deepEqual(await caller.ended, { code: 0, stdout: 'pod-1 serves /tenants/7\n', stderr: '' })
  pod.process.kill('SIGTERM')
  assert.deepEqual(await pod.ended, { code: 0, stdout: '', stderr: '' })
  assert.equal(await scene.raw.exists(scene.key('member', 'pod-1')), 0)
  assert.deepEqual(await scene.pods('tenant-7'), ['pod-1'], 'the destination stays bound, to be reassigned by the next request')
})

test('README: the coordinator and the standalone helpers of the example reach the pod of the example', async t => {
  const scene = setScene(t)
  const podPort = await findFreePort()
  run(t, 'pod.mjs', scene.keyPrefix, podPort)
  await until(async () => await scene.raw.exists(scene.key('member', 'pod-1')) === 1, 'the pod is live')

  for (const [name, path] of [['coordinator.mjs', '/tenants/7/x'], ['standalone.mjs', '/tenants/7'], ['standalone.mjs', '/any']] as const) {
    const port = await findFreePort()
    const { process: coordinator, ended } = run(t, name, scene.keyPrefix, 0, port)
    let answer: Response | undefined
    await until(async () => (answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)) !== undefined, `${name} listens`)
    assert.deepEqual([answer?.status, await answer?.text()], [200, `pod-1 serves ${path}`])
    coordinator.kill()
    await ended
  }
})

for (const name of ['registry.mjs', 'member.mjs', 'strategy.mjs', 'diagnostics.mjs']) {
  test(`README: ${name} runs, and its calls resolve to what the comments say`, async t => {
    const { keyPrefix } = setScene(t)
    const { ended } = run(t, name, keyPrefix, 0)
    assert.deepEqual(await ended, { code: 0, stdout: '', stderr: '' })
  })
}

/** Runs a block as a process of its own; its store, prefix and port are those of the test. */
function run (t: TestContext, name: string, keyPrefix: string, port: number, coordinatorPort = 0): { process: ReturnType<typeof spawn>, ended: Promise<object> } {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-readme-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, name)
  const code = checkComments(blocks.get(name) ?? '')
    .replaceAll('redis://127.0.0.1:6379', storeUrl)
    .replaceAll("'@platformatic/coordinator'", JSON.stringify(entry))
    .replaceAll("'myservice'", JSON.stringify(keyPrefix))
    .replaceAll('3001', String(port))
    .replaceAll('port: 3000', `port: ${coordinatorPort}`)
    .replaceAll("from 'fastify'", `from '${import.meta.resolve('fastify')}'`)
    .replaceAll("from '@fastify/reply-from'", `from '${import.meta.resolve('@fastify/reply-from')}'`)
    .replaceAll('resolve, 5000', 'resolve, 50')
  writeFileSync(file, code)
  const child = spawn(process.execPath, ['--import', 'tsx', file], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) child[stream].setEncoding('utf8').on('data', chunk => { output[stream] += chunk })
  return { process: child, ended: once(child, 'close').then(([code]) => ({ code, ...output })) }
}

/** Turns `await call() // value, prose` into an assertion, where the value is written out in full. */
function checkComments (code: string): string {
  const checked = code.replaceAll(/^await (.+?) \/\/ (true|false|null|\{[^…]*\}|\[[^…]*\])(?:$|[;:,].*$)/gm,
    (_, call: string, value: string) => `assert.deepEqual(sorted(await ${call}), ${value})`)
  const sorted = 'const sorted = value => Array.isArray(value) ? value.sort() : value'
  return `import assert from 'node:assert/strict'\n${sorted}\n${checked}`
}
