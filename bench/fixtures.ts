import type { Redis } from 'iovalkey'
import { Member } from '@platformatic/coordinator'
import type { MemberOptions } from '@platformatic/coordinator'
import type { Bench } from './bench.ts'
import type { Side } from './compare.ts'

/** Seconds: longer than any run. */
const longTtl = 86_400
const fillAtOnce = 5000
// Destination n of a name is bound to so many pods, one behind the other, of those there are from a first on.
const fillScript = `
for n = ARGV[2], ARGV[3] do
  for at = 0, ARGV[4] - 1 do
    redis.call('SADD', KEYS[1] .. ARGV[1] .. '-' .. string.format('%d', n), 'pod-' .. string.format('%d', ARGV[6] + (n + at) % ARGV[5]))
  end
end`

/** Does operations in so many loops, each waiting for its own. */
export function inFlight (count: number, operation: (turn: number) => Promise<unknown>): Side['run'] {
  return async operations => {
    let turn = 0
    const run = async (): Promise<void> => {
      while (turn < operations) await operation(turn++)
    }
    await Promise.all(Array.from({ length: count }, run))
  }
}

/** Does operations one after the other and times each. */
export function oneByOne (operation: (turn: number) => Promise<unknown>): Side['run'] {
  return async operations => {
    const latenciesMs = new Float64Array(operations)
    for (let turn = 0; turn < operations; turn++) {
      const startedAt = performance.now()
      await operation(turn)
      latenciesMs[turn] = performance.now() - startedAt
    }
    return { latenciesMs }
  }
}

/** A side that touches destinations that were never touched, 64 in flight, and forgets them afterwards: the store stays as large as it is. */
export function touchNew (client: Redis, prefix: string, touch: (id: string) => Promise<unknown>): Pick<Side, 'run' | 'clean'> {
  let touched = 0
  return {
    run: async count => {
      touched = count
      await inFlight(64, turn => touch(`new-${turn}`))(count)
    },
    clean: () => removeDestinations(client, prefix, Array.from({ length: touched }, (_, turn) => `new-${turn}`))
  }
}

/** Fails for an answer that says nothing was found: what is measured would be something else. */
export async function found<T> (answer: Promise<T | null>): Promise<T> {
  const result = await answer
  if (result === null) throw new Error('The bench is wrong: nothing was found')
  return result
}

/** Registers pod-0 and on, on the client that is given, with records that outlast the run. */
export async function addMembers (bench: Bench, redis: Redis, keyPrefix: string, count: number, options: (at: number) => Partial<MemberOptions> = () => ({})): Promise<Member[]> {
  const members = Array.from({ length: count }, (_, at) => {
    const address = `http://10.${Math.floor(at / 65_536)}.${Math.floor(at / 256) % 256}.${at % 256}:3000`
    return new Member({ redis, keyPrefix, memberId: `pod-${at}`, address, ttl: longTtl, ...options(at) })
  })
  bench.atEnd(() => Promise.all(members.map(member => member.close())))
  for (let from = 0; from < count; from += 1000) await Promise.all(members.slice(from, from + 1000).map(member => member.register()))
  return members
}

export interface Filling {
  /** Destinations are named `<name>-0` and on. */
  readonly name: string
  readonly count: number
  readonly podsEach: number
  readonly podCount: number
  /** @defaultValue 0 */
  readonly firstPod?: number
}

/** Binds destinations as plain commands would, quickly. */
export async function bindDestinations (client: Redis, prefix: string, { name, count, podsEach, podCount, firstPod = 0 }: Filling): Promise<void> {
  for (let from = 0; from < count; from += fillAtOnce) {
    await client.eval(fillScript, 1, `${prefix}:destination:`, name, from, Math.min(from + fillAtOnce, count) - 1, podsEach, podCount, firstPod)
  }
}

/** Steps through numbers below a count in an order that is not theirs, each once before any comes again. */
export function scatter (count: number): () => number {
  // A prime that divides no power of ten.
  const step = 7919
  let at = 0
  return () => {
    at = (at + step) % count
    return at
  }
}

/** Removes all keys of a prefix. */
export async function removeKeys (client: Redis, prefix: string): Promise<void> {
  for await (const keys of client.scanStream({ match: `${prefix}:*`, count: 5000 }) as AsyncIterable<string[]>) {
    if (keys.length > 0) await client.unlink(...keys)
  }
}

/** Removes destinations by their ids. */
export async function removeDestinations (client: Redis, prefix: string, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += 1000) {
    await client.unlink(...ids.slice(from, from + 1000).map(id => `${prefix}:destination:${id}`))
  }
}
