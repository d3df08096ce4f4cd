import { Redis } from 'iovalkey'

/** Removes all keys of a prefix. */
export async function removeKeys (url: string, keyPrefix: string): Promise<void> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  try {
    for await (const names of client.scanStream({ match: `${keyPrefix}:*`, count: 1000 })) {
      if (names.length > 0) await client.unlink(...names)
    }
  } finally {
    client.disconnect()
  }
}
