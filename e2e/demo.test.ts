import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { Redis } from 'iovalkey'
import { Screen } from '../examples/demo/screen.ts'
import { judge } from '../examples/demo/summary.ts'
import type { Summary } from '../examples/demo/summary.ts'
import { Tally } from '../examples/demo/tally.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'

test('demo --json: prints a consistent summary alone, loses nothing in the drain and leaves nothing behind', async (t) => {
  const demo = startDemo(t, ['--json'])
  const exitCode = await demo.exitCode
  assert.equal(exitCode, 0, demo.output() + demo.errors())
  assert.equal(demo.errors(), '')

  const summary = JSON.parse(demo.output()) as Summary
  assert.equal(summary.ok, true)
  assert.match(summary.verdict, /^ok: /)
  assert.equal(summary.destinations, 300)
  assert.equal(summary.ownerless, 0)
  assert.equal(summary.failing, 0)
  assert.equal(summary.misrouted, 0)
  assert.ok(summary.durationMs < 30_000)

  assert.ok(summary.answered > 300)
  assert.equal(summary.sent, summary.answered + summary.failed)
  assert.equal(summary.answered, sum(summary.pods.map(pod => pod.requests)))
  assert.equal(summary.failed, sum(Object.values(summary.failedByPhase)))

  // What the clients saw, and what the coordinators told of the same requests.
  const { statuses, results } = summary
  assert.equal(sum(Object.values(statuses)), summary.sent)
  assert.equal(statuses['200'], summary.answered)
  assert.equal(sum(Object.values(results)), summary.sent)
  assert.equal((results.hit ?? 0) + (results.orphan_reassigned ?? 0), summary.answered)
  assert.equal(results.orphan_reassigned, summary.killed.reassigned + summary.drained.reassigned)
  for (const status of Object.keys(statuses)) assert.match(status, /^(200|50[234])$/, JSON.stringify(statuses))
  assert.ok(statuses['502']! > 0, 'a pod that was killed refuses connections until its record expires')

  // A pod that dies without a word cannot but fail requests; the one that drains must not.
  assert.ok(summary.failedByPhase.kill > 0)
  assert.equal(summary.failed, summary.failedByPhase.kill)
  assert.ok(summary.longestGapMs > 0 && summary.longestGapMs < 10_000)
  assert.equal(summary.killed.memberId, 'pod-2')
  assert.ok(summary.killed.destinations > 0)
  assert.equal(summary.killed.reassigned, summary.killed.destinations)
  assert.equal(summary.drained.memberId, 'pod-3')
  assert.ok(summary.drained.destinations > 0)
  assert.equal(summary.drained.reassigned, 0)

  assert.deepEqual(summary.pods.map(({ memberId, state, destinations }) => ({ memberId, state, destinations })), [
    { memberId: 'pod-1', state: 'running', destinations: 300 },
    { memberId: 'pod-2', state: 'killed', destinations: 0 },
    { memberId: 'pod-3', state: 'left', destinations: 0 }
  ])
  assert.ok(summary.pods.every(pod => pod.requests > 0))
  await assertNothingLeft(t, summary.keyPrefix, summary.pods.map(pod => pod.pid))
})

test('demo --sabotage: one request to the wrong pod, and plain lines tell every phase, the fault and exit code 1', async (t) => {
  const demo = startDemo(t, ['--sabotage'])
  const exitCode = await demo.exitCode
  const output = demo.output()
  assert.equal(exitCode, 1, output + demo.errors())

  for (const phase of ['start', 'claim', 'steady', 'kill', 'drain', 'after']) {
    assert.match(output, new RegExp(`^ +\\d+\\.\\d s {2}${phase} `, 'm'))
  }
  assert.match(output, /^ {2}misrouted +1$/m)
  assert.match(output, /^ {2}statuses .*\b200: \d+.*\b421: 1\b/m)
  assert.match(output, /^ {2}results .*\bhit: \d+/m)
  assert.match(output, /^ {2}verdict +failed: 1 request went to a pod that did not own the destination$/m)
  assert.equal(output, stripVTControlCharacters(output))
  await assertNothingLeft(t, readKeyPrefix(output), readPids(output))
})

test('demo: a SIGINT in the middle of the run ends everything with exit code 130', async (t) => {
  const demo = startDemo(t, [])
  await demo.until(/ s {2}kill /)
  demo.child.kill('SIGINT')
  assert.equal(await demo.exitCode, 130, demo.output() + demo.errors())
  assert.equal(demo.errors(), '')
  await assertNothingLeft(t, readKeyPrefix(demo.output()), readPids(demo.output()))
})

test('demo: pods end by themselves when the demo crashes', async (t) => {
  const demo = startDemo(t, [])
  await demo.until(/ s {2}steady /)
  const pids = readPids(demo.output())
  assert.equal(pids.length, 3)
  demo.child.kill('SIGKILL')
  await demo.exitCode
  for (const pid of pids) await pollUntil(`pod process ${pid} has ended`, async () => !isRunning(pid))
  await removeKeys(t, readKeyPrefix(demo.output()))
})

test('demo: without a store it says so and exits with 1', async (t) => {
  const demo = startDemo(t, [], { REDIS_URL: 'redis://127.0.0.1:1' })
  assert.equal(await demo.exitCode, 1)
  assert.match(demo.errors(), /^The demo failed with the store at redis:\/\/127.0.0.1:1: Valkey is not available.*\n$/)
})

test('judge: each single fault fails the run', () => {
  const good = { destinations: 300, ownerless: 0, failing: 0, answered: 5_000, misrouted: 0 }
  assert.equal(judge(good).ok, true)
  for (const fault of [{ ownerless: 1 }, { failing: 1 }, { misrouted: 1 }, { answered: 0 }, { destinations: 0 }]) {
    const { ok, verdict } = judge({ ...good, ...fault })
    assert.equal(ok, false, JSON.stringify(fault))
    assert.match(verdict, /^failed: /)
  }
})

test('Tally: a gap lasts from the first failed request to the next answer to a request sent after it', () => {
  const tally = new Tally()
  tally.phase = 'kill'
  tally.fail(502, 'd', 100)
  tally.fail('none', 'd', 200)
  tally.answer('pod-1', 'd', 90, 210)
  assert.equal(tally.failingCount, 1)
  assert.equal(tally.getLongestGap(300), 200)
  tally.answer('pod-1', 'd', 350, 400)
  assert.equal(tally.failingCount, 0)
  assert.equal(tally.getLongestGap(9_000), 300)
  assert.deepEqual([tally.sent, tally.answered, tally.failed, tally.failedByPhase.kill], [4, 2, 2, 2])
  assert.deepEqual(tally.statuses, { 200: 2, 502: 1, none: 1 })
})

test('Screen: on a terminal of any width no line of the table wraps, and NO_COLOR takes the colours away', () => {
  const frame = {
    pods: [{ memberId: 'pod-1', state: 'running', record: 'live', load: 300, destinations: 300, requests: 12_345 } as const],
    destinations: 300,
    sent: 12_345,
    failed: 0
  }
  for (const columns of [1, 20, 62, 63, 80, 200]) {
    const { written, screen } = openScreen({ isTTY: true, columns }, {})
    screen.draw(frame)
    screen.draw(frame)
    const lines = stripVTControlCharacters(written.join('')).split('\n')
    assert.ok(lines.every(line => line.length < columns || line.length === 0), `${columns} columns`)
  }
  const colorful = openScreen({ isTTY: true, columns: 80 }, {})
  colorful.screen.draw(frame)
  assert.ok(colorful.written.join('').includes('\x1b[32mrunning'))
  const plain = openScreen({ isTTY: true, columns: 80 }, { NO_COLOR: '1' })
  plain.screen.draw(frame)
  assert.ok(plain.written.join('').includes('running'))
  assert.ok(!plain.written.join('').includes('\x1b[32m'))
})

function openScreen (terminal: { isTTY: boolean, columns: number }, env: NodeJS.ProcessEnv) {
  const written: string[] = []
  const output = { ...terminal, write: (text: string | Uint8Array) => written.push(String(text)) > 0 }
  return { written, screen: new Screen(output, env) }
}

function startDemo (t: TestContext, args: string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/demo/main.ts', ...args], {
    cwd: root,
    env: { ...process.env, REDIS_URL: redis, ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const exitCode = once(child, 'close').then(([code]) => code as number | null)
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { output += text })
  child.stderr.setEncoding('utf8').on('data', (text) => { errors += text })
  return {
    child,
    exitCode,
    output: () => output,
    errors: () => errors,
    until: (pattern: RegExp) => pollUntil(`the output matches ${pattern}`, async () => {
      assert.equal(child.exitCode, null, output + errors)
      return pattern.test(output)
    })
  }
}

async function assertNothingLeft (t: TestContext, keyPrefix: string, pids: number[]): Promise<void> {
  assert.equal(pids.length, 3)
  assert.deepEqual(pids.filter(isRunning), [])
  assert.deepEqual(await connect(t).keys(`${keyPrefix}:*`), [])
}

async function removeKeys (t: TestContext, keyPrefix: string): Promise<void> {
  const client = connect(t)
  const keys = await client.keys(`${keyPrefix}:*`)
  if (keys.length > 0) await client.unlink(keys)
}

function connect (t: TestContext): Redis {
  const client = new Redis(redis)
  t.after(() => client.disconnect())
  return client
}

function isRunning (pid: number): boolean {
  try {
    process.kill(pid, 0)
    // In a container nobody may reap an orphan: it has ended, yet its number stays.
    return process.platform !== 'linux' || !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function readKeyPrefix (output: string): string {
  return /keys (coordinator-demo-[0-9a-f]+):\*/.exec(output)![1]!
}

function readPids (output: string): number[] {
  return [...output.matchAll(/pid (\d+)$/gm)].map(match => Number(match[1]))
}

async function pollUntil (claim: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!await isTrue()) {
    assert.ok(performance.now() < deadline, `Expected that within 20 s ${claim}`)
    await sleep(20)
  }
}

function sum (numbers: number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}
