import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Connection } from '../../src/connection.ts'
import type { HeldLock } from '../../src/held-locks.ts'
import { buildKeys } from '../../src/keys.ts'
import type { Keys } from '../../src/keys.ts'
import { LuaScript } from '../../src/lua-script.ts'
import type { Decision } from '../../src/decisions.ts'
import { MemberScripts } from '../../src/member-scripts.ts'
import type { HeartbeatReply, MemberRecord, RegisterReply, Writer } from '../../src/member-scripts.ts'
import { checkRegistryOptions } from '../../src/options.ts'
import { Scripts } from '../../src/scripts.ts'
import type { Incarnation } from '../../src/scripts.ts'
import { setScene, storeUrl } from './store.ts'
import type { Scene } from './store.ts'

export interface BeatOptions extends Partial<MemberRecord> {
  counted?: number
  lockTtlMs?: number
  lockIds?: string[]
}

/** What a test of a script works with: the scripts on a connection of their own, without Registry and Member. */
export interface ScriptScene extends Scene {
  /** Names without the prefix that the client itself adds. */
  readonly names: Keys
  readonly connection: Connection
  /** The scripts without member index. */
  readonly plain: Scripts
  /** The scripts with member index. */
  readonly indexed: Scripts
  readonly pod: MemberScripts
  /** Runs a file of lua/ and gives its reply undecoded. */
  run (name: string, keys: string[], args: string[]): Promise<unknown>
  register (memberId: string, incarnation: string, record?: Partial<MemberRecord>): Promise<RegisterReply & { writer: Writer }>
  beat (writer: Writer, options?: BeatOptions): Promise<HeartbeatReply>
  deregister (writer: Writer, address?: string): Promise<'deregistered' | 'absent' | 'superseded'>
  /** Asks for one destination with one list of candidates. */
  claim (destinationId: string, memberIds: string[], flags?: { isIndexed?: boolean, claimOnMiss?: boolean, reassignOrphans?: boolean }): Promise<Decision>
  record (memberId: string): Promise<Record<string, string>>
  owned (memberId: string): Promise<string[]>
  bindRaw (destinationId: string, ...memberIds: string[]): Promise<void>
  /** What was published since the last call. */
  heard (): Promise<string[]>
}

export function memberRecord (record: Partial<MemberRecord> = {}): MemberRecord {
  return { address: 'http://pod.test:3000', load: 0, isDraining: false, loadPerBinding: 1, ttlMs: 30_000, memberIndex: '0', ...record }
}

/** A writer that register() has not ranked yet. */
export function unranked (memberId: string, incarnation: string): Writer {
  return { memberId, incarnation, registeredAt: '0', mayWrite: () => true, isLatest: () => true }
}

/** A pod as a registry binds or drops it. */
export function byRegistry (memberId: string): Incarnation {
  return { memberId, incarnation: '', registeredAt: '0' }
}

export function heldLock (lockId: string, destinationId: string, ...fields: string[]): HeldLock {
  return { lockId, destinationId, fields }
}

/** Sets the scene; with a `clientPrefix` the scripts' client has that `keyPrefix`, and `raw` still sees full names. */
export async function setScriptScene (t: TestContext, { url = storeUrl, clientPrefix = '' } = {}): Promise<ScriptScene> {
  const prefix = `test-${randomBytes(6).toString('hex')}`
  const scene = setScene(t, url, clientPrefix + prefix)
  const connection = new Connection(checkRegistryOptions({ redis: url, redisOptions: { keyPrefix: clientPrefix }, keyPrefix: prefix, storeTimeout: 20_000 }))
  const names = buildKeys(prefix, connection.clientPrefix)
  const plain = new Scripts(connection, names, false)
  const indexed = new Scripts(connection, names, true)
  const pod = new MemberScripts(connection, names)
  const subscriber = scene.raw.duplicate()
  const channel = `${scene.keyPrefix}:changes`
  let messages: string[] = []
  subscriber.on('error', () => {})
  subscriber.on('message', (_channel: string, message: string) => messages.push(message))
  t.after(async () => {
    subscriber.disconnect()
    await connection.close()
  })
  await subscriber.subscribe(channel)

  return {
    ...scene,
    names,
    connection,
    plain,
    indexed,
    pod,
    run: (name, keys, args) => new LuaScript(name, 'write').run(connection, keys, args),
    async register (memberId, incarnation, record) {
      const writer = unranked(memberId, incarnation)
      const reply = await pod.registerMember(writer, memberRecord({ address: `http://${memberId}.test:3000`, ...record }), false)
      return { ...reply, writer: { ...writer, registeredAt: reply.registeredAt } }
    },
    beat (writer, { counted = 0, lockTtlMs = 90_000, lockIds = [], ...record } = {}) {
      return pod.heartbeat(writer, memberRecord({ address: `http://${writer.memberId}.test:3000`, ...record }), counted, lockTtlMs, lockIds)
    },
    deregister: (writer, address = `http://${writer.memberId}.test:3000`) => pod.deregisterMember(writer, address),
    async claim (destinationId, memberIds, { isIndexed = false, claimOnMiss = true, reassignOrphans = true } = {}) {
      const [decision] = await (isIndexed ? indexed : plain).claim([{ destinationId, memberIds, claimOnMiss, reassignOrphans }])
      if (decision === undefined || decision instanceof Error) throw decision ?? new Error('no decision')
      return decision
    },
    record: memberId => scene.raw.hgetall(scene.key('member', memberId)),
    owned: async memberId => (await scene.raw.smembers(scene.key('owned', memberId))).sort(),
    async bindRaw (destinationId, ...memberIds) {
      for (let from = 0; from < memberIds.length; from += 5000) await scene.raw.sadd(scene.key('destination', destinationId), ...memberIds.slice(from, from + 5000))
    },
    async heard () {
      // One server delivers one channel in order: what was published before this mark has come when the mark comes.
      const mark = `mark ${randomBytes(6).toString('hex')}`
      const marked = new Promise<void>(resolve => {
        const look = (_channel: string, message: string): void => {
          if (message !== mark) return
          subscriber.off('message', look)
          resolve()
        }
        subscriber.on('message', look)
      })
      await scene.raw.publish(channel, mark)
      await marked
      const heard = messages.filter(message => message !== mark)
      messages = []
      return heard
    }
  }
}

/** Many ids, all different. */
export function manyIds (count: number, name = 'dead'): string[] {
  return Array.from({ length: count }, (_, at) => `${name}-${at}`)
}

/** Ids that a careless script would confuse with each other, with its keys or with its own replies. */
export const trickyIds = [
  'a', 'a:b', 'a:', ':a', 'A', ' a', 'a ', '{a}', '{}', '{', 'a\n', 'a\0', '\0', '\u00e4', 'a\u0308', '日本', '😀', '__proto__', 'constructor',
  '0', '1', '00', '-1', '1e3', 'nil', 'false', 'error', 'bound', 'empty', 'claimed', 'members', 'features', '%d', '*', '?', '[a]', '\\', "'", '"', 'x'.repeat(10_240)
]
