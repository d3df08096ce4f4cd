import type { Connection } from './connection.ts'
import type { HeldLock } from './held-locks.ts'
import type { Keys } from './keys.ts'
import { LuaScript } from './lua-script.ts'
import { ReplyReader } from './reply-reader.ts'

const lua = {
  deregisterMember: new LuaScript('deregister-member', 'write'),
  heartbeat: new LuaScript('heartbeat', 'write'),
  registerLock: new LuaScript('register-lock', 'write'),
  registerMember: new LuaScript('register-member', 'write'),
  releaseLocks: new LuaScript('release-locks', 'write')
}

/** Who writes: `registeredAt` is '0' until a register() was answered. */
export interface Writer {
  memberId: string
  incarnation: string
  registeredAt: string
  /** False from the moment the member has left: what was begun before must not write any more. */
  mayWrite: () => boolean
  /** False once register() was called again: an answer to this writer says nothing about the new registration. */
  isLatest: () => boolean
}

/** What a pod's record is to say. */
export interface MemberRecord {
  address: string
  load: number
  isDraining: boolean
  loadPerBinding: number
  ttlMs: number
  /** The memberIndex feature as it is recorded: '1' or '0'. */
  memberIndex: string
}

/** What a heartbeat found and did. */
export interface HeartbeatReply {
  status: 'beat' | 'restored' | 'superseded'
  registeredAt: string
  pending: number
  /** Recorded value of the memberIndex feature, where the record was restored. */
  recordedIndex: string
  missingLockIds: string[]
  lostLockIds: string[]
}

/** What became of a registration. */
export interface RegisterReply {
  status: 'registered' | 'mismatch'
  registeredAt: string
  pending: number
  /** Recorded value of the memberIndex feature. */
  recordedIndex: string
}

/** The scripts by which a pod writes its record and its locks; one method a file of lua/. All may throw what `Connection.run` throws. */
export class MemberScripts {
  readonly #connection: Connection
  readonly #keys: Keys

  constructor (connection: Connection, keys: Keys) {
    this.#connection = connection
    this.#keys = keys
  }

  async registerMember (writer: Writer, record: MemberRecord, isStrict: boolean): Promise<RegisterReply> {
    const { members, memberBase, features, changesChannel } = this.#keys
    const args = [
      writer.memberId, writer.incarnation, String(record.ttlMs), record.address, String(record.load), record.isDraining ? '1' : '0',
      String(record.loadPerBinding), changesChannel, record.memberIndex, isStrict ? '1' : '0'
    ]
    const reply = new ReplyReader(await lua.registerMember.run(this.#connection, [members, memberBase + writer.memberId, features], args, writer.mayWrite))
    return { status: reply.text() as RegisterReply['status'], registeredAt: reply.text(), pending: reply.pending(), recordedIndex: reply.text() }
  }

  /**
   * @param counted the part of `pending` that the load of this beat contains
   * @param lockIds locks to renew, 100 at most
   */
  async heartbeat (writer: Writer, record: MemberRecord, counted: number, lockTtlMs: number, lockIds: string[]): Promise<HeartbeatReply> {
    const { members, memberBase, lockBase, features, changesChannel } = this.#keys
    const args = [
      writer.memberId, writer.incarnation, writer.registeredAt, String(record.ttlMs), record.address, String(record.load),
      record.isDraining ? '1' : '0', String(record.loadPerBinding), String(counted), changesChannel,
      String(lockTtlMs), record.memberIndex, ...lockIds
    ]
    const reply = new ReplyReader(await lua.heartbeat.run(this.#connection, [members, memberBase + writer.memberId, lockBase, features], args, writer.mayWrite))
    return {
      status: reply.text() as HeartbeatReply['status'],
      registeredAt: reply.text(),
      pending: reply.pending(),
      recordedIndex: reply.text(),
      missingLockIds: reply.list(() => reply.text()),
      lostLockIds: reply.rest()
    }
  }

  async deregisterMember ({ memberId, incarnation, registeredAt }: Writer, address: string): Promise<'deregistered' | 'absent' | 'superseded'> {
    const { members, memberBase, changesChannel } = this.#keys
    const args = [memberId, incarnation, registeredAt, changesChannel, address]
    return await lua.deregisterMember.run(this.#connection, [members, memberBase + memberId], args) as 'deregistered' | 'absent' | 'superseded'
  }

  async registerLock (writer: Writer, { lockId, destinationId, fields }: HeldLock, lockTtlMs: number): Promise<'registered' | 'superseded'> {
    const { lockBase, memberBase } = this.#keys
    const args = [writer.memberId, writer.incarnation, writer.registeredAt, String(lockTtlMs), destinationId, ...fields]
    return await lua.registerLock.run(this.#connection, [lockBase + lockId, memberBase + writer.memberId], args, writer.mayWrite) as 'registered' | 'superseded'
  }

  /** Removes those of the locks, 100 at most, that are the writer's own; resolves to how many. */
  async releaseLocks ({ memberId, incarnation }: Writer, lockIds: string[]): Promise<number> {
    const keys = [this.#keys.lockBase, this.#keys.memberBase + memberId]
    return Number(await lua.releaseLocks.run(this.#connection, keys, [memberId, incarnation, ...lockIds]))
  }
}
