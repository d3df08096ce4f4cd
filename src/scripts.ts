import type { Connection } from './connection.ts'
import { decodeDecisions } from './decisions.ts'
import type { Decision } from './decisions.ts'
import type { CoordinatorError } from './errors.ts'
import { GatheredCalls } from './gathered-calls.ts'
import type { Keys } from './keys.ts'
import { LuaScript } from './lua-script.ts'
import { decodeCandidate, ReplyReader } from './reply-reader.ts'
import { toCoordinatorError } from './store-errors.ts'
import type { Candidate, DeregisterOptions } from './types.ts'

const lua = {
  bind: new LuaScript('bind', 'write'),
  claim: new LuaScript('claim', 'write'),
  declareFeatures: new LuaScript('declare-features', 'write'),
  deregisterDestination: new LuaScript('deregister-destination', 'write'),
  listMembers: new LuaScript('list-members', 'read'),
  prune: new LuaScript('prune', 'write'),
  pruneMembers: new LuaScript('prune-members', 'write'),
  resolve: new LuaScript('resolve', 'read'),
  resolveLock: new LuaScript('resolve-lock', 'read'),
  unbind: new LuaScript('unbind', 'write')
}

export interface ClaimRequest {
  destinationId: string
  claimOnMiss: boolean
  reassignOrphans: boolean
  /** Candidates, the preferred one first. */
  memberIds: string[]
}

/** The pod that holds a lock. */
export interface HeldLock {
  memberId: string
  address: string
}

interface LockAnswer {
  readonly held: HeldLock | null
}

interface BindRequest {
  readonly destinationId: string
  readonly pod: Incarnation
  readonly isExclusive: boolean
}

interface BindAnswer {
  readonly status: BindStatus
}

export type MemberPage =
  | { status: 'page', live: Candidate[], dead: string[] }
  | { status: 'ids', memberIds: string[] }
  | { status: 'many' }

export type BindStatus = 'bound' | 'present' | 'refused' | 'superseded' | 'taken'

/** Identifies the writer of a pod's own binding. */
export interface Incarnation {
  memberId: string
  /** Empty when a registry writes on the pod's behalf. */
  incarnation: string
  registeredAt: string
}

/** The scripts about destinations and members as callers see them; one method a file of lua/. All may throw what `Connection.run` throws. */
export class Scripts {
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #hasIndex: '0' | '1'
  readonly #resolves: GatheredCalls<string, Decision>
  readonly #claims: GatheredCalls<ClaimRequest, Decision>
  readonly #locks: GatheredCalls<string, LockAnswer>
  readonly #binds: GatheredCalls<BindRequest, BindAnswer>

  constructor (connection: Connection, keys: Keys, memberIndex: boolean) {
    this.#connection = connection
    this.#keys = keys
    this.#hasIndex = memberIndex ? '1' : '0'
    const weigh = ({ live, dead }: Decision): number => live.length + dead.length
    this.#resolves = new GatheredCalls({ ask: ids => this.resolve(ids), weigh })
    this.#claims = new GatheredCalls({ ask: requests => this.claim(requests), weigh })
    this.#locks = new GatheredCalls({ ask: lockIds => this.#resolveLocks(lockIds), weigh: () => 1 })
    this.#binds = new GatheredCalls({ ask: requests => this.#bindAll(requests), weigh: () => 1 })
  }

  /** Reads destinations, 32 at most. Each answer is a decision, or the error that befell it alone. */
  async resolve (destinationIds: string[]): Promise<(Decision | CoordinatorError)[]> {
    const keys = this.#keys
    const reply = await lua.resolve.run(this.#connection, [keys.destinationBase, keys.memberBase], destinationIds)
    return decodeDecisions(reply, destinationIds.length, 'read')
  }

  /** Reads destinations, 32 at most, and binds a pod where one is needed and allowed. */
  async claim (requests: ClaimRequest[]): Promise<(Decision | CoordinatorError)[]> {
    const { destinationBase, memberBase, ownedBase, changesChannel } = this.#keys
    const args = [changesChannel, this.#hasIndex]
    for (const { destinationId, claimOnMiss, reassignOrphans, memberIds } of requests) {
      args.push(destinationId, claimOnMiss ? '1' : '0', reassignOrphans ? '1' : '0', String(memberIds.length), ...memberIds)
    }
    return decodeDecisions(await lua.claim.run(this.#connection, [destinationBase, memberBase, ownedBase], args), requests.length, 'write')
  }

  /** Reads one destination, together with others that are asked for at the same time. */
  resolveOne (destinationId: string): Promise<Decision> {
    return this.#resolves.ask(destinationId)
  }

  /** Reads one destination and binds a pod where one is needed and allowed, together with others. */
  claimOne (request: ClaimRequest): Promise<Decision> {
    return this.#claims.ask(request)
  }

  /** Reads up to 100 members; without ids the whole set, if it is that small. */
  async listMembers (memberIds: string[] = []): Promise<MemberPage> {
    const reply = new ReplyReader(await lua.listMembers.run(this.#connection, [this.#keys.members, this.#keys.memberBase], memberIds))
    const status = reply.text()
    if (status === 'many') return { status }
    if (status === 'ids') return { status, memberIds: reply.rest() }
    return { status: 'page', live: reply.list(() => decodeCandidate(reply)), dead: reply.rest() }
  }

  /** Reads the ids of all members, with a plain command: for sets too large for a script. */
  async readMemberIds (): Promise<string[]> {
    return await this.#connection.run(() => this.#connection.client.smembers(this.#keys.members), 'read')
  }

  /** Takes ids that still have no record, of 100 at most, out of the set of members; resolves to how many they were. */
  async pruneMembers (memberIds: string[]): Promise<number> {
    return Number(await lua.pruneMembers.run(this.#connection, [this.#keys.members, this.#keys.memberBase], memberIds))
  }

  /** Takes dead pods out of a destination that has live ones; resolves to how many they were. */
  async prune (destinationId: string): Promise<number> {
    const { destinationBase, memberBase, ownedBase, changesChannel } = this.#keys
    const keys = [destinationBase + destinationId, memberBase, ownedBase]
    return Number(await lua.prune.run(this.#connection, keys, [destinationId, changesChannel, this.#hasIndex]))
  }

  /**
   * Binds a pod, together with others that are bound at the same time.
   * @param isExclusive bind only where no other pod is bound: 'taken' otherwise
   */
  async bind (destinationId: string, pod: Incarnation, isExclusive = false): Promise<BindStatus> {
    return (await this.#binds.ask({ destinationId, pod, isExclusive })).status
  }

  async #bindAll (requests: BindRequest[]): Promise<(BindAnswer | CoordinatorError)[]> {
    const { destinationBase, memberBase, ownedBase, changesChannel } = this.#keys
    const args = [changesChannel, this.#hasIndex]
    for (const { destinationId, pod, isExclusive } of requests) {
      args.push(destinationId, pod.memberId, pod.incarnation, pod.registeredAt, isExclusive ? '1' : '0')
    }
    const reply = new ReplyReader(await lua.bind.run(this.#connection, [destinationBase, memberBase, ownedBase], args))
    return requests.map(() => {
      const status = reply.text()
      return status === 'error' ? toCoordinatorError(reply.text(), 'write') : { status: status as BindStatus }
    })
  }

  async unbind (destinationId: string, { memberId, incarnation, registeredAt }: Incarnation): Promise<'unbound' | 'absent' | 'superseded'> {
    const { destinationBase, memberBase, ownedBase, changesChannel } = this.#keys
    const keys = [destinationBase + destinationId, memberBase + memberId, ownedBase + memberId]
    const args = [destinationId, memberId, changesChannel, this.#hasIndex, incarnation, registeredAt]
    return await lua.unbind.run(this.#connection, keys, args) as 'unbound' | 'absent' | 'superseded'
  }

  /** Forgets a destination, if it still holds the pod named or has only dead pods where that is asked; resolves to how many pods it had. */
  async deregisterDestination (destinationId: string, { ifHolds, ifOrphaned }: DeregisterOptions = {}): Promise<number> {
    const { destinationBase, ownedBase, memberBase, changesChannel } = this.#keys
    const args = [destinationId, changesChannel, this.#hasIndex, ifHolds ?? '', ifOrphaned === true ? '1' : '0']
    return Number(await lua.deregisterDestination.run(this.#connection, [destinationBase + destinationId, ownedBase, memberBase], args))
  }

  async hasBinding (destinationId: string): Promise<boolean> {
    const key = this.#keys.destinationBase + destinationId
    return Number(await this.#connection.run(() => this.#connection.client.exists(key), 'read')) === 1
  }

  /** Finds the pod of a lock, together with others that are asked for at the same time. */
  async resolveLock (lockId: string): Promise<HeldLock | null> {
    return (await this.#locks.ask(lockId)).held
  }

  async #resolveLocks (lockIds: string[]): Promise<(LockAnswer | CoordinatorError)[]> {
    const reply = new ReplyReader(await lua.resolveLock.run(this.#connection, [this.#keys.lockBase, this.#keys.memberBase], lockIds))
    return lockIds.map(() => {
      const status = reply.text()
      if (status === 'error') return toCoordinatorError(reply.text(), 'read')
      return { held: status === 'held' ? { memberId: reply.text(), address: reply.text() } : null }
    })
  }

  /** Reads the destinations of a pod in pages of about 1,000. */
  async listOwned (memberId: string): Promise<string[]> {
    const key = this.#keys.ownedBase + memberId
    const owned = new Set<string>()
    let cursor = '0'
    do {
      const at = cursor
      const [next, ids] = await this.#connection.run(() => this.#connection.client.sscan(key, at, 'COUNT', 1000), 'read')
      for (const id of ids) owned.add(id)
      cursor = next
    } while (cursor !== '0')
    return [...owned]
  }

  /** Records features where nobody did yet; resolves to the recorded value of each. */
  async declareFeatures (features: Readonly<Record<string, string>>): Promise<string[]> {
    return new ReplyReader(await lua.declareFeatures.run(this.#connection, [this.#keys.features], Object.entries(features).flat())).rest()
  }
}
