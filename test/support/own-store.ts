import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Redis } from 'iovalkey'
import { findLastingPort } from '../../services/free-port.ts'
import { cleanUpScenes, until } from './store.ts'

/** A store of one test alone, which it may stop, freeze, fill and start again; gone after the test. */
export interface OwnStore {
  readonly port: number
  readonly url: string
  readonly folder: string
  /** Starts it (again, on the same port) and waits until it answers. */
  start (): Promise<void>
  /** Ends it at once, with all its data. */
  kill (): Promise<void>
  /** Stops it in its tracks: connections stay, nothing is answered. */
  freeze (): void
  thaw (): void
}

/** Starts a store of the binary under test with the given extra arguments; fails where there is none. */
export async function startOwnStore (t: TestContext, args: string[] = []): Promise<OwnStore> {
  const binary = findBinary()
  const port = await findLastingPort()
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-test-'))
  let server: ChildProcess | undefined

  const store: OwnStore = {
    port,
    folder,
    url: `redis://127.0.0.1:${port}`,
    async start () {
      server = spawn(binary, ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, ...args], { stdio: 'ignore' })
      await until(async () => await ping(port), `${binary} answers on its port`)
    },
    async kill () {
      if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
      const ended = once(server, 'exit')
      server.kill('SIGKILL')
      await ended
    },
    freeze () { server?.kill('SIGSTOP') },
    thaw () { server?.kill('SIGCONT') }
  }
  t.after(async () => {
    store.thaw()
    await cleanUpScenes(t)
    await store.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  await store.start()
  return store
}

/** Path of the store's binary: the one that the run is forced to, else the first on the PATH. */
export function findBinary (): string {
  const forced = process.env.COORDINATOR_STORE
  const names = forced === 'valkey-server' || forced === 'redis-server' ? [forced] : ['valkey-server', 'redis-server']
  const found = names.find(name => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0)
  if (found === undefined) throw new Error(`This test stops and starts a store of its own: put ${names.join(' or ')} on the PATH`)
  return found
}

async function ping (port: number): Promise<boolean> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null, commandTimeout: 500 })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.ping() === 'PONG'
  } catch {
    return false
  } finally {
    client.disconnect()
  }
}
