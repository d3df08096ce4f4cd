import type { Redis } from 'iovalkey'

/** CPU time used so far, of one or more processes. */
export interface CpuSource {
  /** Processes that it adds up. */
  readonly processCount: number
  readMicroseconds (): Promise<number>
}

/** What some work used up. */
export interface Spent {
  ms: number
  clientUs: number
  storeUs: number
  /** Calls of each command that the store executed, those from inside scripts too. */
  commands: Record<string, number>
}

/** The process that runs the bench. */
export const ownCpu: CpuSource = {
  processCount: 1,
  readMicroseconds: async () => usedMicroseconds()
}

/** User and system time of this process, all threads. Their sum is exact, the split between them is not. */
export function usedMicroseconds (): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Commands by which the meter itself asks: never counted. */
const ownCommands = new Set(['info', 'ping'])

/** Measures what work costs its client and the store. The store's counters are those of the whole store: it has to have no other clients. */
export class Meter {
  readonly #store: Redis
  readonly client: CpuSource

  /** @param store a connection that the work does not use */
  constructor (store: Redis, client: CpuSource = ownCpu) {
    this.#store = store
    this.client = client
  }

  /** Runs the work between two readings; asking the store lies outside of the time and of the client's share. */
  async measure<T> (work: () => Promise<T>): Promise<Spent & { result: T }> {
    const before = await this.#readStore()
    const clientBefore = await this.client.readMicroseconds()
    const startedAt = performance.now()
    const result = await work()
    const ms = performance.now() - startedAt
    const clientUs = await this.client.readMicroseconds() - clientBefore
    const after = await this.#readStore()
    return { result, ms, clientUs, storeUs: after.us - before.us, commands: subtract(after.commands, before.commands) }
  }

  async #readStore (): Promise<{ us: number, commands: Record<string, number> }> {
    // One reply for both. Redis and Valkey take several sections since version 7.
    const text = await this.#store.call('INFO', 'cpu', 'commandstats') as string
    const commands: Record<string, number> = {}
    for (const [, name, calls] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      if (name !== undefined && !ownCommands.has(name)) commands[name] = Number(calls)
    }
    return { us: (readSeconds(text, 'used_cpu_sys') + readSeconds(text, 'used_cpu_user')) * 1e6, commands }
  }
}

/** Commands that the store executed. */
export function countCommands (commands: Readonly<Record<string, number>>): number {
  return Object.values(commands).reduce((sum, calls) => sum + calls, 0)
}

/**
 * Requests that clients sent and waited for: the scripts, or all commands where there were none. The library sends nothing but scripts
 * on the paths that are measured here, so what else was executed came from inside them.
 */
export function countRoundTrips (commands: Readonly<Record<string, number>>): number {
  const scripts = (commands['evalsha'] ?? 0) + (commands['eval'] ?? 0)
  return scripts > 0 ? scripts : countCommands(commands)
}

/** Adds calls up, in place. */
export function addCommands (sum: Record<string, number>, commands: Readonly<Record<string, number>>): void {
  for (const [name, calls] of Object.entries(commands)) sum[name] = (sum[name] ?? 0) + calls
}

function subtract (after: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>): Record<string, number> {
  const entries = Object.entries(after).map(([name, calls]) => [name, calls - (before[name] ?? 0)] as const)
  return Object.fromEntries(entries.filter(([, calls]) => calls > 0))
}

function readSeconds (text: string, name: string): number {
  return Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? NaN)
}
