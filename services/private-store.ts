import { setTimeout as delay } from 'node:timers/promises'
import { findFreePort } from './free-port.ts'
import { KeptProcess } from './kept-process.ts'
import { askStore } from './resp.ts'

const host = '127.0.0.1'
const readyDeadlineMs = 10_000
const endDeadlineMs = 3_000
const portTries = 10

/** A store that was started here and is stopped here. */
export interface PrivateStore {
  readonly url: string
  /** Resolves when the store is gone, and its folder with it. */
  stop (): Promise<void>
}

/**
 * Starts a store from the binary on a free port of 127.0.0.1, without persistence. It is stopped when `stop` is called and when this
 * process ends in any other way. Throws with the store's log when it does not become ready.
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

async function tryPort (binary: string, port: number): Promise<PrivateStore | string> {
  const args = ['--port', String(port), '--bind', host, '--save', '', '--appendonly', 'no', '--dir', '.', '--daemonize', 'no']
  const kept = new KeptProcess({ prefix: 'coordinator-store-', endSignal: 'SIGTERM', endDeadlineMs })
  const stop = async (): Promise<void> => kept.close()
  const run: { end?: string } = {}
  let isReady = false

  kept.run(binary, args).then(({ exit, log }) => {
    run.end = `it ended with ${exit}\n${log}`
    if (isReady && !kept.isClosing) console.error(`store: ${binary} is gone while in use: ${run.end}`)
    return stop()
  })

  const deadline = Date.now() + readyDeadlineMs
  while (run.end === undefined && Date.now() < deadline) {
    if (kept.pid > 0 && await isStore(port, kept.pid)) {
      isReady = true
      return { url: `redis://${host}:${port}`, stop }
    }
    await delay(10)
  }
  const failure = run.end ?? `no answer on port ${port} within ${readyDeadlineMs} ms`
  await stop()
  return failure
}

/** Looks at the process id too: what answers on the port may be the store of another run that won the port. */
async function isStore (port: number, pid: number): Promise<boolean> {
  if (await askStore({ host, port }, 'PING') !== 'PONG') return false
  const text = await askStore({ host, port }, 'INFO server')
  return text !== null && text.split('\r\n').includes(`process_id:${pid}`)
}
