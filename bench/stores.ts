import { startPrivateStore } from '../services/private-store.ts'
import type { Bench } from './bench.ts'

const binaries = ['valkey-server', 'redis-server']

/**
 * Starts a store for one row alone, of the kind that COORDINATOR_STORE names where it does; it ends with the group. What a row says about
 * the memory or the growth of a store holds only where nothing else is in it.
 */
export async function startOwnStore (bench: Bench): Promise<string> {
  const choice = process.env['COORDINATOR_STORE']
  const failures: unknown[] = []
  for (const binary of choice !== undefined && binaries.includes(choice) ? [choice] : binaries) {
    try {
      const store = await startPrivateStore(binary)
      bench.atEnd(() => store.stop())
      return store.url
    } catch (error) {
      failures.push(error)
    }
  }
  throw new AggregateError(failures, `This row starts a store of its own, and there is no ${binaries.join(' or ')} on the PATH`)
}
