import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { findLastingPort } from './free-port.ts'
import { KeptProcess } from './kept-process.ts'
import { buildPostgresUrl, postgresAccount, withConnection } from './postgres-client.ts'
import { findTemporaryFolder, findUnprivilegedUser } from './unprivileged-user.ts'

const host = '127.0.0.1'
const readyDeadlineMs = 30_000
/** PostgreSQL itself kills what has not ended 5 s after the order to stop at once. */
const endDeadlineMs = 8_000
const portTries = 10
/** Nothing outside of the folder: no socket, no shared memory with a name that a killed process would leave behind. */
const settings = [
  `listen_addresses=${host}`,
  'unix_socket_directories=',
  'dynamic_shared_memory_type=mmap',
  'max_connections=300',
  'fsync=off',
  'logging_collector=off',
  'log_destination=stderr'
]
const stopSignals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** How to stop: `fast` breaks connections off and writes everything out, `immediate` is a crash, repaired at the next start. */
export type StopMode = keyof typeof stopSignals

/**
 * A PostgreSQL in a folder of its own, on 127.0.0.1. It is stopped, and its folder removed, by `close` and when this process ends in
 * any other way. What it acknowledged survives a crash of its processes, but not of the machine (fsync is off).
 */
export class PrivatePostgres {
  /** The port that `start` found; the same at every later start. */
  port = 0
  /** As it says itself once it runs. */
  version = ''

  readonly #kept: KeptProcess
  readonly #program: string
  #isInUse = false

  private constructor (kept: KeptProcess, program: string) {
    this.#kept = kept
    this.#program = program
  }

  /** Makes a new cluster by the programs in the folder; it does not run yet. Throws with the log when that fails. */
  static async create (programFolder: string): Promise<PrivatePostgres> {
    const user = findUnprivilegedUser()
    const parent = findTemporaryFolder(user)
    const kept = new KeptProcess({ prefix: 'coordinator-postgres-', parent, user, endSignal: 'SIGQUIT', endDeadlineMs, env: cleanEnvironment() })
    try {
      const initdb = join(programFolder, 'initdb')
      writeFileSync(join(await kept.openFolder(), 'password'), postgresAccount.password)
      const options = ['--username', postgresAccount.user, '--pwfile', 'password', '--auth', 'scram-sha-256']
      const { exit, log } = await kept.run(initdb, ['--pgdata', 'data', ...options, '--encoding', 'UTF8', '--locale', 'C', '--no-sync'])
      if (exit !== 'code 0') throw new Error(`${initdb} failed, it ended with ${exit}\n${log}`)
    } catch (error) {
      await kept.close()
      throw error
    }
    return new PrivatePostgres(kept, join(programFolder, 'postgres'))
  }

  get url (): string {
    return buildPostgresUrl(this.port)
  }

  /** Process id of the postmaster, the parent of all other processes of the instance. */
  get pid (): number {
    return this.#kept.pid
  }

  /** Starts it and resolves when the database `storage` answers. Throws with the log when it does not. */
  async start (): Promise<void> {
    const hasPort = this.port > 0
    let failure = ''
    for (let tries = 0; tries < portTries; tries++) {
      if (!hasPort) this.port = await findLastingPort()
      failure = await this.#tryPort()
      if (failure === '') return
      // Between our look for a free port and the bind another process can take the port: look again.
      if (hasPort || !/could not bind|in use/.test(failure)) break
    }
    if (!hasPort) this.port = 0
    throw new Error(`${this.#program} did not start: ${failure}`)
  }

  /** Resolves when all its processes are gone. The data stay. */
  async stop (mode: StopMode): Promise<void> {
    this.#isInUse = false
    this.#kept.signal(stopSignals[mode])
    await this.#kept.ended
  }

  /** Resolves when it is gone, and its folder with it. */
  async close (): Promise<void> {
    this.#isInUse = false
    await this.#kept.close()
  }

  async #tryPort (): Promise<string> {
    const args = ['-D', 'data', '-p', String(this.port), ...settings.flatMap((setting) => ['-c', setting])]
    const run: { end?: string } = {}
    const ended = this.#kept.run(this.#program, args).then(({ exit, log }) => {
      run.end = `it ended with ${exit}\n${log}`
      if (this.#isInUse) console.error(`postgres: ${this.#program} is gone while in use: ${run.end}`)
    })

    const deadline = Date.now() + readyDeadlineMs
    while (run.end === undefined && Date.now() < deadline) {
      // Who won the port may not speak to us.
      if (this.pid > 0 && await Promise.race([this.#isReady(), ended]) === true) {
        this.#isInUse = run.end === undefined
        return run.end ?? ''
      }
      await delay(20)
    }
    if (run.end !== undefined) return run.end
    await this.stop('immediate')
    return `no answer on port ${this.port} within ${readyDeadlineMs} ms, then ${run.end}`
  }

  /** Looks at the process id too: what answers on the port may be the instance of another run that won the port. */
  async #isReady (): Promise<boolean> {
    const { user, password, database } = postgresAccount
    try {
      return await withConnection({ host, port: this.port, user, password, ssl: false, database: 'postgres' }, async (client) => {
        const { rows } = await client.query(`
          SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid, split_part(current_setting('server_version'), ' ', 1) AS version,
                 EXISTS (SELECT FROM pg_database WHERE datname = $1) AS "hasDatabase"`, [database])
        const [{ pid, version, hasDatabase }] = rows
        if (pid !== this.pid) return false
        if (!hasDatabase) await client.query(`CREATE DATABASE ${database}`)
        this.version = version
        return true
      })
    } catch {
      return false
    }
  }
}

/** Gives an environment without what would change the new cluster or its messages. */
function cleanEnvironment (): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name))
  return { ...Object.fromEntries(kept), LC_ALL: 'C' }
}
