import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { until } from '../../test/support/store.ts'
import { atClose, hasFailed } from './closing.ts'

const readyDeadlineMs = 90_000
const exitDeadlineMs = 90_000
/** Characters of a process's stderr that are printed for a failed test: the last ones. */
const printedLength = 4000

export interface ProcessOptions {
  /** How it is called in messages; the memberId of a pod. */
  name: string
  /** A JavaScript file, run with plain node. */
  file: string
  env: NodeJS.ProcessEnv
}

/** How a process ended. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  /** Milliseconds from the signal to the end. */
  tookMs: number
}

const running = new Set<ChildProcess>()
// A test file that is stopped (a time limit, Ctrl-C) takes its processes with it.
process.once('exit', () => { for (const child of running) child.kill('SIGKILL') })
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))

/** A process under test. It is killed after the test; that it ended by itself fails the test. */
export class TestProcess {
  readonly name: string
  readonly options: ProcessOptions
  /** Where it listens, once it is ready. */
  address = ''
  /** running: as it should · paused · gone: it ended because the test wanted it */
  state: 'running' | 'paused' | 'gone' = 'running'
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  #stdout = ''
  #stderr = ''
  #isEndWanted = false

  constructor (options: ProcessOptions) {
    this.options = options
    this.name = options.name
    // The channel is there for its end: a test that is killed cannot end its processes, they notice.
    this.#child = spawn(process.execPath, [options.file], { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    running.add(this.#child)
    this.#child.stdout?.setEncoding('utf8').on('data', text => { this.#stdout += text })
    this.#child.stderr?.setEncoding('utf8').on('data', text => { this.#stderr += text })
    this.#closed = once(this.#child, 'close').then(() => {
      running.delete(this.#child)
      if (this.#isEndWanted) this.state = 'gone'
    })
  }

  get pid (): number {
    return this.#child.pid ?? 0
  }

  get stderr (): string {
    return this.#stderr
  }

  /** What went wrong with this process by itself; undefined while all is well. */
  get crash (): string | undefined {
    if (this.#isEndWanted || this.#isAlive()) return undefined
    return `${this.name} ended by itself (${this.#child.signalCode ?? `exit code ${this.#child.exitCode}`})`
  }

  /** Waits for its end, and for the last it printed. */
  async ended (): Promise<void> {
    await this.#closed
  }

  /** Waits for its line of JSON. */
  async ready (): Promise<void> {
    try {
      await until(() => {
        if (this.crash !== undefined) throw new Error(`${this.crash} before it was ready`)
        return this.#stdout.includes('\n')
      }, `${this.name} is ready`, readyDeadlineMs)
    } catch (error) {
      throw new Error(`${(error as Error).message}; it printed ${JSON.stringify(this.#stdout)} and:\n${this.#stderr}`)
    }
    const line = this.#stdout.slice(0, this.#stdout.indexOf('\n'))
    const { ready, address } = JSON.parse(line) as { ready?: boolean, address?: string }
    if (ready !== true || address === undefined) throw new Error(`Expected the ready line of ${this.name}, got ${line}`)
    this.address = address
  }

  /** As the kernel does when memory is short. */
  async kill (): Promise<Exit> {
    return await this.#end('SIGKILL')
  }

  /** Asks it to leave and waits for its end; fails when its exit code is not 0. */
  async terminate (signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    const exit = await this.#end(signal)
    if (exit.code !== 0) throw new Error(`Expected ${this.name} to exit with 0 after ${signal}, got ${exit.signal ?? exit.code}:\n${this.#stderr}`)
    return exit
  }

  /** Stops it in its tracks; what reaches it lies in its sockets. */
  async pause (): Promise<void> {
    this.state = 'paused'
    this.#child.kill('SIGSTOP')
    if (process.platform === 'linux') await until(() => /^State:\tT/m.test(readFileSync(`/proc/${this.pid}/status`, 'utf8')), `${this.name} is stopped`)
  }

  resume (): void {
    if (this.state === 'gone') return
    this.state = 'running'
    this.#child.kill('SIGCONT')
  }

  async #end (signal: NodeJS.Signals): Promise<Exit> {
    if (this.crash !== undefined) throw new Error(`${this.crash}:\n${this.#stderr}`)
    const startedAt = performance.now()
    this.#isEndWanted = true
    this.#child.kill(signal)
    const timer = setTimeout(() => {
      this.#stderr += `\nstill there ${exitDeadlineMs} ms after ${signal}: killed\n`
      this.#child.kill('SIGKILL')
    }, exitDeadlineMs)
    await this.#closed
    clearTimeout(timer)
    return { code: this.#child.exitCode, signal: this.#child.signalCode, tookMs: performance.now() - startedAt }
  }

  #isAlive (): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }
}

/** Starts a process and waits until it is ready. */
export async function startProcess (t: TestContext, options: ProcessOptions): Promise<TestProcess> {
  const started = new TestProcess(options)
  atClose(t, async () => {
    const { crash } = started
    if (crash !== undefined) await started.ended()
    // What it printed matters only when something went wrong: Valkey being away, for one, is logged by design.
    if ((crash !== undefined || hasFailed(t)) && started.stderr !== '') t.diagnostic(`${started.name} printed:\n${started.stderr.slice(-printedLength)}`)
    if (crash !== undefined) throw new Error(crash)
    if (started.state !== 'gone') await started.kill()
  })
  await started.ready()
  return started
}
