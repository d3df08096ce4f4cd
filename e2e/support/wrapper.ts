import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** What the command prints: the service's URL, its own process id and its arguments. */
export interface Report { readonly url: string, readonly pid: number, readonly args: readonly string[] }

/** A run of one of the scripts that run a command with a service. */
export interface Run {
  readonly wrapper: ChildProcess
  /** Where its services put their folders. */
  readonly folder: string
  /** Resolves to the first line that the command printed. */
  readReport (): Promise<Report>
  /** Resolves to the wrapper's exit code when it and its streams have ended. */
  readonly closed: Promise<number | null>
  output (): string
  errors (): string
}

/** A command that reports what it was given, then does what the rest of the script says; in it, `url` is the value of the variable. */
export function buildCommand (variable: string, rest: string): string[] {
  const report = `const url = process.env.${variable}; console.log(JSON.stringify({ url, pid: process.pid, args: process.argv.slice(1) }));`
  return [process.execPath, '-e', report + rest, '--']
}

/** Starts `services/<script>` with the arguments; whatever is left of it is ended after the test. */
export function startWrapper (t: TestContext, script: string, args: readonly string[], environment: NodeJS.ProcessEnv): Run {
  const folder = makeFolder(t)
  const env = { ...process.env, TMPDIR: folder, ...environment }
  const wrapper = spawn(process.execPath, ['--import', 'tsx', `services/${script}`, ...args], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => wrapper.kill('SIGKILL'))
  let output = ''
  let errors = ''
  wrapper.stdout.setEncoding('utf8').on('data', (chunk: string) => { output += chunk })
  wrapper.stderr.setEncoding('utf8').on('data', (chunk: string) => { errors += chunk })

  const readReport = async (): Promise<Report> => {
    await until(() => output.includes('\n') || wrapper.exitCode !== null, 'the command prints its report')
    assert.ok(output.includes('\n'), errors)
    const report = JSON.parse(output.slice(0, output.indexOf('\n')))
    t.after(() => killIfThere(report.pid))
    return report
  }
  const closed = once(wrapper, 'close').then(([code]) => code as number | null)
  return { wrapper, folder, readReport, closed, output: () => output, errors: () => errors }
}

/** Makes a folder for temporary files that every user can enter, as a service may run as another one; removed after the test. */
export function makeFolder (t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-services-test-'))
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** Lists the folders of the services of one kind that run there. */
export function listFolders ({ folder }: Pick<Run, 'folder'>, kind: 'store' | 'postgres'): string[] {
  return readdirSync(folder).filter((name) => name.startsWith(`coordinator-${kind}-`))
}

export async function until (condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 20_000
  while (!await condition()) {
    assert.ok(Date.now() < deadline, `Expected within 20 s: ${what}`)
    await delay(20)
  }
}

export function killIfThere (pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}

export function isThere (pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
