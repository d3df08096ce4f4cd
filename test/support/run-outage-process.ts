import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from './store.ts'

export interface OutageProcess {
  /** Waits until the application's pod is registered and its requests run. */
  isReady (): Promise<void>
  /** False as soon as the process ended. */
  isAlive (): boolean
  /** Heartbeats and requests of the application that failed so far. */
  readonly failures: Readonly<Failures>
  /** Has the application close everything, and waits for the end of the process. */
  stop (): Promise<void>
  /** Waits for the end of the process; returns its exit code, its last report, and all that it printed beside it. */
  end (): Promise<{ exitCode: number | null, report: Report, stdout: string, stderr: string }>
}

interface Failures {
  beats: number
  requests: number
}

export interface Report {
  /** Codes of the errors that onError heard of. */
  told: string[]
  /** Codes of the errors on the diagnostics channel. */
  published: string[]
  rejections: number
}

/** Starts outage-process.ts; killed after the test when it still runs. */
export function runOutageProcess (t: TestContext, ...args: string[]): OutageProcess {
  const file = fileURLToPath(new URL('./outage-process.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], { stdio: ['pipe', 'pipe', 'pipe', 'ipc'] })
  const closed = once(child, 'close')
  let stdout = ''
  let stderr = ''
  const failures: Failures = { beats: 0, requests: 0 }
  child.on('message', message => { Object.assign(failures, message) })
  child.stdout?.setEncoding('utf8').on('data', text => { stdout += text })
  child.stderr?.setEncoding('utf8').on('data', text => { stderr += text })
  child.stdin?.on('error', () => {})
  t.after(() => { child.kill('SIGKILL') })
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null
  return {
    isAlive,
    failures,
    isReady: () => until(() => {
      if (!isAlive()) throw new Error(`The process ended early: ${stdout}${stderr}`)
      return stdout.startsWith('ready\n')
    }, 'the process is ready'),
    async stop () {
      child.stdin?.write('stop\n')
      await until(() => !isAlive(), `the process ends by itself (it printed ${stdout}${stderr})`, 20_000)
    },
    async end () {
      await until(() => !isAlive(), `the process ends by itself (it printed ${stdout}${stderr})`, 20_000)
      await closed
      const lines = stdout.replace(/^ready\n/, '').trimEnd().split('\n')
      const report = JSON.parse(lines.pop() ?? '') as Report
      return { exitCode: child.exitCode, report, stdout: lines.join('\n'), stderr }
    }
  }
}
