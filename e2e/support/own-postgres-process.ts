// A test file by itself: it freezes a PostgreSQL of its own, prints the ids of its processes and stays until it is killed.
import { writeSync } from 'node:fs'
import { test } from 'node:test'
import { startOwnPostgres } from './own-postgres.ts'
import { listFamilyIds } from './process-family.ts'

test('a test that does not end', async (t) => {
  const { pid, freeze } = await startOwnPostgres(t)
  freeze()
  writeSync(1, `${JSON.stringify(listFamilyIds(pid))}\n`)
  const stay = setInterval(() => {}, 1_000)
  await new Promise((resolve) => t.signal.addEventListener('abort', resolve))
  clearInterval(stay)
})
