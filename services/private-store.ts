import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { askStore } from './resp.ts'

const keeperFile = fileURLToPath(new URL('./keep-store.mjs', import.meta.url))
const host = '127.0.0.1'
const readyDeadlineMs = 10_000
const stopDeadlineMs = 5_000
const portTries = 10

/** What is known of a store that is being started or runs. */
interface StoreState {
  pid: number
  /** How it ended, once it did by itself. */
  end: string | undefined
  isReady: boolean
  isStopping: boolean
}

type KeeperMessage = { readonly pid: number } | { readonly exit: string, readonly log: string }

/** A store that was started here and is stopped here. */
export interface PrivateStore {
  readonly url: string
  /** Resolves when the store is gone, and its folder with it. */
  stop (): Promise<void>
}

/**
 * Starts a store from the binary on a free port of 127.0.0.1, without persistence. A keeper process stops it when `stop` is called
 * and when this process ends in any other way. Throws with the store's log when it does not become ready.
 */
export async function startPrivateStore (binary: string): Promise<PrivateStore> {
  let failure = ''
  for (let tries = 0; tries < portTries; tries++) {
    const port = await findFreePort()
    const started = await tryPort(binary, port)
    if (typeof started !== 'string') return started
    failure = started
    // Between our look for a free port and the store's bind another process can take the port: look again.
    if (!/bind|in use/i.test(failure)) break
  }
  throw new Error(`${binary} did not start: ${failure}`)
}

/** Runs the command when this process has ended, in whatever way, or when the returned function is called (resolves at its end). */
export function runAtEnd (command: string, args: readonly string[]): () => Promise<void> {
  const keeper = startKeeper('after', command, args)
  return async () => stopKeeper(keeper, 60_000)
}

async function tryPort (binary: string, port: number): Promise<PrivateStore | string> {
  const args = ['--port', String(port), '--bind', host, '--save', '', '--appendonly', 'no', '--dir', '.', '--daemonize', 'no']
  const keeper = startKeeper('run', binary, args)
  const state: StoreState = { pid: 0, end: undefined, isReady: false, isStopping: false }

  keeper.on('message', (message: KeeperMessage) => {
    if ('pid' in message) {
      state.pid = message.pid
      return
    }
    state.end = `it ended with ${message.exit}\n${message.log}`
    if (state.isReady && !state.isStopping) console.error(`store: ${binary} is gone while in use: ${state.end}`)
  })
  keeper.on('exit', () => {
    if (state.end !== undefined || state.isStopping) return
    // Someone killed the keeper: nobody else would stop its store.
    state.end = 'its keeper was killed'
    if (state.pid > 0) kill(state.pid)
  })
  const stop = async (): Promise<void> => {
    state.isStopping = true
    await stopKeeper(keeper, stopDeadlineMs)
  }

  const deadline = Date.now() + readyDeadlineMs
  while (state.end === undefined && Date.now() < deadline) {
    if (state.pid > 0 && await isStore(port, state.pid)) {
      state.isReady = true
      return { url: `redis://${host}:${port}`, stop }
    }
    await delay(10)
  }
  await stop()
  return state.end ?? `no answer on port ${port} within ${readyDeadlineMs} ms`
}

/** Looks at the process id too: what answers on the port may be the store of another run that won the port. */
async function isStore (port: number, pid: number): Promise<boolean> {
  if (await askStore({ host, port }, 'PING') !== 'PONG') return false
  const text = await askStore({ host, port }, 'INFO server')
  return text !== null && text.split('\r\n').includes(`process_id:${pid}`)
}

function kill (pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone already.
  }
}

async function findFreePort (): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, host, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

function startKeeper (mode: 'run' | 'after', command: string, args: readonly string[]): ChildProcess {
  return fork(keeperFile, [mode, command, ...args], { detached: true, execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
}

async function stopKeeper (keeper: ChildProcess, deadlineMs: number): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return
  const gone = new Promise((resolve) => keeper.once('exit', resolve))
  if (keeper.connected) keeper.disconnect()
  await Promise.race([gone, delay(deadlineMs, undefined, { ref: false })])
}
