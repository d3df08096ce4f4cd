import type { TestContext } from 'node:test'
import type { QueryResultRow } from 'pg'
import { findPostgresFolder } from '../../services/postgres-binaries.ts'
import { withConnection } from '../../services/postgres-client.ts'
import { PrivatePostgres } from '../../services/private-postgres.ts'
import type { StopMode } from '../../services/private-postgres.ts'
import { signalFamily } from './process-family.ts'

/**
 * A PostgreSQL of one test alone, which it may stop, freeze and start again; gone after the test, and also when the test's process
 * is killed. What it acknowledged survives each stop.
 */
export interface OwnPostgres {
  /** With user, password and database `storage`; the same after a new start. */
  readonly url: string
  readonly port: number
  /** Process id of the postmaster, the parent of all other processes; another one after a new start. */
  readonly pid: number
  /** Starts it (again, on the same port) and resolves when it answers. */
  start (): Promise<void>
  /** Stops it, a frozen one too: `fast` breaks connections off and writes everything out, `immediate` is a crash. Resolves when it is gone. */
  stop (mode: StopMode): Promise<void>
  /** Stops all its processes in their tracks: connections stay, nothing is answered, nothing new is accepted by it. */
  freeze (): void
  thaw (): void
}

/** Starts a PostgreSQL with an empty database `storage`; fails where postgres and initdb are not installed. */
export async function startOwnPostgres (t: TestContext): Promise<OwnPostgres> {
  const folder = findPostgresFolder(process.env)
  if (folder === undefined) throw new Error('This test stops and starts a PostgreSQL of its own: put postgres and initdb on the PATH')
  const postgres = await PrivatePostgres.create(folder)
  t.after(async () => {
    own.thaw()
    await postgres.close()
  })
  const own: OwnPostgres = {
    get url () { return postgres.url },
    get port () { return postgres.port },
    get pid () { return postgres.pid },
    start: async () => postgres.start(),
    async stop (mode) {
      own.thaw()
      await postgres.stop(mode)
    },
    freeze () { signalFamily(postgres.pid, 'SIGSTOP') },
    thaw () { signalFamily(postgres.pid, 'SIGCONT') }
  }
  await own.start()
  return own
}

/** Runs one query over a connection of its own; rejects when there is no answer within 5 s. */
export async function query<Row extends QueryResultRow> (url: string, text: string, values: unknown[] = []): Promise<Row[]> {
  return withConnection({ connectionString: url }, async (client) => (await client.query<Row>(text, values)).rows)
}
