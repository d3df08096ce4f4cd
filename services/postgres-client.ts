import pg from 'pg'

const connectDeadlineMs = 5_000

/** What the private and the composed PostgreSQL are reached with. It guards nothing: they listen on 127.0.0.1 and hold test data. */
export const postgresAccount = { user: 'storage', password: 'storage', database: 'storage' } as const

export function buildPostgresUrl (port: number): string {
  const { user, password, database } = postgresAccount
  return `postgresql://${user}:${password}@127.0.0.1:${port}/${database}`
}

/** Runs an action with a connection of its own. Rejects when there is no connection, or no reply, within the deadline. */
export async function withConnection<T> (config: pg.ClientConfig, action: (client: pg.Client) => Promise<T>, deadlineMs = connectDeadlineMs): Promise<T> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: deadlineMs, query_timeout: deadlineMs })
  // A connection that breaks also rejects what waits on it.
  client.on('error', () => {})
  try {
    await client.connect()
    return await action(client)
  } finally {
    // Not awaited: one that answers no more would not end either.
    client.end().catch(() => {})
  }
}

/** Says why the database does not answer; undefined when it does. */
export async function findConnectObstacle (url: string, deadlineMs?: number): Promise<string | undefined> {
  try {
    await withConnection({ connectionString: url }, async (client) => client.query('SELECT 1'), deadlineMs)
    return undefined
  } catch (error) {
    const { message, code } = error as Error & { code?: string }
    return message || code || 'no connection'
  }
}
