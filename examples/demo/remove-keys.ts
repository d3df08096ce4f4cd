import { Redis } from 'iovalkey'
import { redis } from './settings.ts'

/** Removes all that a run of the demo wrote. An application has no need for this: its keys are its routing. */
export async function removeKeys (keyPrefix: string): Promise<void> {
  const client = new Redis(redis, { maxRetriesPerRequest: 1, connectTimeout: 1_000, commandTimeout: 1_000 })
  client.on('error', () => {}) // the commands below report it
  try {
    for await (const keys of client.scanStream({ match: `${keyPrefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await client.unlink(keys)
    }
  } finally {
    client.disconnect()
  }
}
