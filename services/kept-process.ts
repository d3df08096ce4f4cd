import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const keeperFile = fileURLToPath(new URL('./keep-service.mjs', import.meta.url))

/** An account of this machine, by its numbers. */
export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

export interface KeptProcessOptions {
  /** What the name of its folder starts with. */
  readonly prefix: string
  /** The signal that ends the process. */
  readonly endSignal: NodeJS.Signals
  /** Milliseconds from that signal to SIGKILL. */
  readonly endDeadlineMs: number
  /** Who runs it; this process's own user unless given. */
  readonly user?: SystemUser | undefined
  /** Where its folder is made. @defaultValue the folder for temporary files */
  readonly parent?: string
  readonly env?: NodeJS.ProcessEnv
}

/** How a command ended, and the end of what it printed. */
export interface Ending {
  readonly exit: string
  readonly log: string
}

type KeeperMessage = { readonly folder: string } | { readonly pid: number } | Ending

/**
 * A private service, or one command after the other, in a folder of its own. A keeper process ends what runs and removes the folder
 * when `close` is called and when this process ends in any other way.
 */
export class KeptProcess {
  /** 0 while nothing runs. */
  pid = 0
  isClosing = false
  /** Resolves when the last run has ended. */
  ended: Promise<Ending | undefined> = Promise.resolve(undefined)

  readonly #keeper: ChildProcess
  readonly #options: KeptProcessOptions
  readonly #opened: Promise<void>
  #folder = ''
  /** How the last run ended, or why there can be none; undefined while it lasts. */
  #ending: Ending | undefined
  #onEnd: ((ending: Ending) => void) | undefined
  #cleaning: Promise<void> | undefined

  constructor (options: KeptProcessOptions) {
    const { prefix, endSignal, endDeadlineMs, user, parent = tmpdir(), env } = options
    this.#options = options
    this.#keeper = startKeeper({ prefix, endSignal, endDeadlineMs, user, parent }, env)
    this.#keeper.on('message', (message: KeeperMessage) => this.#receive(message))
    this.#opened = new Promise((resolve) => {
      this.#keeper.once('message', () => resolve())
      this.#keeper.once('exit', () => resolve())
    })
    this.#keeper.on('exit', () => {
      if (!this.isClosing) this.#cleaning = this.#cleanUp(this.pid)
      this.#end({ exit: this.isClosing ? 'it was stopped' : 'its keeper was killed', log: '' })
    })
  }

  /** Path of the folder; rejects where it could not be made. */
  async openFolder (): Promise<string> {
    await this.#opened
    if (this.#folder === '') throw new Error(this.#ending?.exit)
    return this.#folder
  }

  /** Starts a command in the folder; resolves when it has ended. Only one at a time. */
  async run (command: string, args: readonly string[]): Promise<Ending> {
    if (this.#onEnd) throw new Error('The last command has not ended yet')
    // The keeper is gone and will not answer.
    if (!this.#keeper.connected) return this.#ending ?? { exit: 'it was stopped', log: '' }
    const ended = new Promise<Ending>((resolve) => {
      this.#ending = undefined
      this.#onEnd = resolve
      this.#keeper.send({ run: [command, ...args] }, () => {})
    })
    this.ended = ended
    return ended
  }

  signal (signal: NodeJS.Signals): void {
    if (this.#keeper.connected) this.#keeper.send({ signal }, () => {})
  }

  /** Resolves when what ran is gone, and its folder with it. */
  async close (): Promise<void> {
    this.isClosing = true
    await stopKeeper(this.#keeper, this.#options.endDeadlineMs + 2_000)
    await this.#cleaning
  }

  #receive (message: KeeperMessage): void {
    if ('folder' in message) {
      this.#folder = message.folder
    } else if ('pid' in message) {
      this.pid = message.pid
    } else {
      this.#end(message)
    }
  }

  #end (ending: Ending): void {
    this.pid = 0
    this.#ending ??= ending
    this.#onEnd?.(this.#ending)
    this.#onEnd = undefined
  }

  /** Someone killed the keeper: nobody else would stop its service. */
  async #cleanUp (pid: number): Promise<void> {
    const deadline = Date.now() + this.#options.endDeadlineMs
    if (pid > 0) {
      signalIfThere(pid, this.#options.endSignal)
      while (signalIfThere(pid, 0) && Date.now() < deadline) await delay(20)
      signalIfThere(pid, 'SIGKILL')
    }
    if (this.#folder !== '') rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** Runs the command when this process has ended, in whatever way, or when the returned function is called (resolves at its end). */
export function runAtEnd (command: string, args: readonly string[]): () => Promise<void> {
  const keeper = startKeeper({ atEnd: [command, ...args] })
  return async () => stopKeeper(keeper, 60_000)
}

function startKeeper (plan: object, env: NodeJS.ProcessEnv = process.env): ChildProcess {
  return fork(keeperFile, [JSON.stringify(plan)], { detached: true, env, execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
}

async function stopKeeper (keeper: ChildProcess, deadlineMs: number): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return
  const gone = new Promise((resolve) => keeper.once('exit', resolve))
  if (keeper.connected) keeper.disconnect()
  await Promise.race([gone, delay(deadlineMs, undefined, { ref: false })])
}

function signalIfThere (pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
