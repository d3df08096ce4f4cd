import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Redis } from 'iovalkey'
import { Member, Registry } from '../../src/index.ts'
import type { MemberOptions, RegistryOptions } from '../../src/index.ts'

/** The store `npm test` found or started. */
export const storeUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'

/** What a test of the library works with; everything made by it is closed, and every key of its prefix removed, after the test. */
export interface Scene {
  readonly keyPrefix: string
  /** A plain client, for looking at keys and for writing records as other software would. */
  readonly raw: Redis
  registry (options?: Partial<RegistryOptions>): Registry
  member (memberId: string, options?: Partial<MemberOptions>): Member
  /** A member that is registered. */
  liveMember (memberId: string, options?: Partial<MemberOptions>): Promise<Member>
  /** Writes a record with plain commands and without this library's own fields. */
  rawMember (memberId: string, fields?: Record<string, string | number>, ttlSeconds?: number): Promise<void>
  /** Full name of a key: `key('destination', id)`. */
  key (...parts: string[]): string
  /** The pods of a destination, sorted. */
  pods (destinationId: string): Promise<string[]>
  /** Names of all keys of the prefix without the prefix, sorted. */
  keys (): Promise<string[]>
}

// node:test runs the clean-ups of a test first in, first out: a store of the test's own, which is there before the scene, has to see to
// it that the scene is cleaned up before the store goes.
const cleanUps = new WeakMap<TestContext, (() => Promise<void>)[]>()

/** Cleans up the scenes of a test; each is cleaned up once. */
export async function cleanUpScenes (t: TestContext): Promise<void> {
  await Promise.all((cleanUps.get(t) ?? []).map(cleanUp => cleanUp()))
}

/** Sets a scene with a random prefix on the given store. */
export function setScene (t: TestContext, url: string = storeUrl, keyPrefix: string = `test-${randomBytes(6).toString('hex')}`): Scene {
  const raw = new Redis(url, { maxRetriesPerRequest: 1 })
  raw.on('error', () => {})
  const open: { close (): Promise<void> }[] = []
  const key = (...parts: string[]): string => [keyPrefix, ...parts].join(':')

  let cleanedUp: Promise<void> | undefined
  const cleanUp = async (): Promise<void> => {
    await Promise.all(open.map(each => each.close()))
    try {
      for await (const names of raw.scanStream({ match: `${keyPrefix.replace(/[\\*?[\]]/g, '\\$&')}:*`, count: 1000 })) {
        if (names.length > 0) await raw.del(...names)
      }
    } catch { // the store of this test is gone, and its keys with it
    }
    raw.disconnect()
  }
  cleanUps.set(t, [...cleanUps.get(t) ?? [], () => (cleanedUp ??= cleanUp())])
  t.after(() => cleanUpScenes(t))

  function keep<T extends { close (): Promise<void> }> (each: T): T {
    open.push(each)
    return each
  }

  const scene: Scene = {
    keyPrefix,
    raw,
    key,
    registry: options => keep(new Registry({ redis: url, keyPrefix, ...options })),
    member: (memberId, options) => keep(new Member({ redis: url, keyPrefix, memberId, address: `http://${memberId}.test:3000`, ...options })),
    async liveMember (memberId, options) {
      const member = scene.member(memberId, options)
      await member.register()
      return member
    },
    async rawMember (memberId, fields = {}, ttlSeconds = 30) {
      const record = { address: `http://${memberId}.test:3000`, load: 0, ...fields }
      await raw.multi().sadd(key('members'), memberId).hset(key('member', memberId), record).expire(key('member', memberId), ttlSeconds).exec()
    },
    pods: async destinationId => (await raw.smembers(key('destination', destinationId))).sort(),
    async keys () {
      const names: string[] = []
      for await (const page of raw.scanStream({ match: `${keyPrefix}:*`, count: 1000 })) names.push(...page)
      return [...new Set(names)].map(name => name.slice(keyPrefix.length + 1)).sort()
    }
  }
  return scene
}

/** Polls until the condition holds, and fails after the deadline. */
export async function until (condition: () => unknown, what: string, deadlineMs = 15_000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!await condition()) {
    if (performance.now() > deadline) throw new Error(`Waited ${deadlineMs} ms in vain until ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Counts the calls a server executed by command name, between two moments; commands of all its clients count. */
export async function countCommands (raw: Redis, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await readCalls(raw)
  await work()
  const after = await readCalls(raw)
  const counts: Record<string, number> = {}
  for (const [name, calls] of Object.entries(after)) {
    const more = calls - (before[name] ?? 0)
    if (more > 0 && name !== 'info') counts[name] = more
  }
  return counts
}

async function readCalls (raw: Redis): Promise<Record<string, number>> {
  const calls: Record<string, number> = {}
  for (const line of (await raw.info('commandstats')).split('\r\n')) {
    const match = /^cmdstat_([^:]+):calls=(\d+)/.exec(line)
    if (match !== null) calls[match[1] as string] = Number(match[2])
  }
  return calls
}

/** Counts the commands that name a key of the scene's prefix, on a store that others use at the same time. */
export async function countSceneCommands ({ raw, keyPrefix, key }: Scene, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const end = key('counted')
  let isOver = false
  const monitor = await raw.monitor()
  try {
    monitor.on('monitor', (_time: string, [name = '', ...args]: string[]) => {
      if (args.includes(end)) isOver = true
      else if (!isOver && args.some(arg => arg.startsWith(`${keyPrefix}:`))) counts[name.toLowerCase()] = (counts[name.toLowerCase()] ?? 0) + 1
    })
    await work()
    await raw.get(end)
    await until(() => isOver, 'all commands were seen')
  } finally {
    monitor.disconnect()
  }
  return counts
}
