import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Redis } from 'iovalkey'
import { Member, Registry } from '../../src/index.ts'
import type { ResolvedDestination } from '../../src/index.ts'
import { until } from '../support/store.ts'
import { Rules } from './rules.ts'
import type { Process, Verdict } from './rules.ts'
import { destinationIds, memberIds, processIds, registryNames } from './steps.ts'
import type { ProcessName, RegistryName, Step } from './steps.ts'

/** The library beside the rules: takes each step on both and holds the answers and the keys against each other. */
export class Fleet {
  readonly #redis: Redis
  readonly #keyPrefix = `test-model-${randomBytes(6).toString('hex')}`
  readonly #rules = new Rules()
  readonly #members: Record<ProcessName, Member>
  readonly #processes: Record<ProcessName, Process>
  readonly #registries: Record<RegistryName, Registry>
  /** Pods the caching registry read as serving a destination, since it last wrote that one itself. */
  readonly #remembered = new Map<string, string[]>()

  /** What was seen to happen, for a test that wants to know that it tested something. */
  readonly seen: Map<string, number>

  constructor (redis: Redis, seen: Map<string, number>) {
    this.seen = seen
    const options = { redis, keyPrefix: this.#keyPrefix, memberIndex: true }
    const member = (name: ProcessName): Member => new Member({ ...options, memberId: processIds[name], address: `http://${name}:1` })
    const process = (name: ProcessName): Process => ({ name, memberId: processIds[name], standing: 'idle', wantsDraining: false, rank: 0 })
    this.#redis = redis
    this.#members = { a1: member('a1'), a2: member('a2'), b1: member('b1') }
    this.#processes = { a1: process('a1'), a2: process('a2'), b1: process('b1') }
    this.#registries = {
      cached: new Registry({ ...options, cache: { ttl: 60_000 }, strategy: 'least-loaded' }),
      plain: new Registry({ ...options, cache: false })
    }
  }

  async close (): Promise<void> {
    await Promise.all([...Object.values(this.#members), ...Object.values(this.#registries)].map(each => each.close()))
    const names = ['members', 'features', ...memberIds.flatMap(id => [`member:${id}`, `owned:${id}`]), ...destinationIds.map(id => `destination:${id}`)]
    await this.#redis.del(...names.map(name => this.#key(name)))
  }

  async take (step: Step): Promise<void> {
    switch (step.do) {
      case 'register':
        await this.#members[step.process].register()
        this.#rules.register(this.#processes[step.process])
        break
      case 'heartbeat': {
        const isRenewed = await this.#members[step.process].heartbeat()
        assert.equal(isRenewed, this.#rules.beat(this.#processes[step.process]))
        this.#note(isRenewed ? 'beat' : this.#processes[step.process].standing)
        break
      }
      case 'drain':
      case 'undrain': {
        const wanted = step.do === 'drain'
        assert.equal(await this.#members[step.process].setDraining(wanted), this.#rules.setDraining(this.#processes[step.process], wanted))
        break
      }
      case 'deregister':
        assert.equal(await this.#members[step.process].deregister(), this.#rules.deregister(this.#processes[step.process]))
        break
      case 'memberAdd': {
        const process = this.#processes[step.process]
        const isAdded = await this.#members[step.process].addToDestination(step.destinationId)
        assert.equal(isAdded, this.#rules.add(step.destinationId, process.memberId, process))
        break
      }
      case 'memberRemove': {
        const process = this.#processes[step.process]
        const isRemoved = await this.#members[step.process].removeFromDestination(step.destinationId)
        assert.equal(isRemoved, this.#rules.remove(step.destinationId, process.memberId, process))
        break
      }
      case 'writeRaw':
        await this.#writePlainly(step.memberId)
        break
      case 'drainRaw':
      case 'undrainRaw':
        await this.#writePlainly(step.memberId, step.do === 'drainRaw')
        break
      case 'expire':
        await this.#expire(step.memberId, step.byTtl)
        break
      case 'resolve':
        await this.#resolve(step.registry, step.destinationId, step)
        break
      case 'race':
        await this.#race(step.destinationId)
        break
      case 'add': {
        const isAdded = await this.#registries[step.registry].addPodToDestination(step.destinationId, step.memberId)
        assert.equal(isAdded, this.#rules.add(step.destinationId, step.memberId))
        this.#forgetOwn(step.registry, step.destinationId)
        break
      }
      case 'remove': {
        const isRemoved = await this.#registries[step.registry].removePodFromDestination(step.destinationId, step.memberId)
        assert.equal(isRemoved, this.#rules.remove(step.destinationId, step.memberId))
        this.#forgetOwn(step.registry, step.destinationId)
        break
      }
      case 'deregisterDestination':
        assert.equal(await this.#registries[step.registry].deregisterDestination(step.destinationId), this.#rules.forget(step.destinationId))
        this.#forgetOwn(step.registry, step.destinationId)
        break
      case 'prune':
        await this.#list(step.registry)
        break
      default:
        throw new Error(`No such step: ${step satisfies never as string}`)
    }
  }

  /** Compares every key with the rules: bindings, the member index (I4), who is live, that no record is immortal. */
  async check (): Promise<void> {
    const found = this.#redis.pipeline()
    for (const id of destinationIds) found.smembers(this.#key('destination', id))
    for (const id of memberIds) found.smembers(this.#key('owned', id))
    for (const id of memberIds) found.hget(this.#key('member', id), 'draining')
    for (const id of memberIds) found.pttl(this.#key('member', id))
    found.smembers(this.#key('members'))
    const replies = (await found.exec() ?? []).map(([error, reply]) => {
      if (error !== null) throw error
      return reply
    })
    const next = (count: number): unknown[] => replies.splice(0, count)

    const pods = next(destinationIds.length).map(ids => (ids as string[]).sort())
    assert.deepEqual(pods, destinationIds.map(id => this.#rules.podsOf(id)), 'pods of the destinations')
    const owned = next(memberIds.length).map(ids => (ids as string[]).sort())
    assert.deepEqual(owned, memberIds.map(memberId => destinationIds.filter((_, at) => pods[at]?.includes(memberId)).sort()), 'member index')
    const draining = next(memberIds.length).map(field => field === '1')
    const remaining = next(memberIds.length).map(Number)
    const live = memberIds.filter((_, at) => remaining[at] !== -2)
    assert.deepEqual(live.map(id => ({ memberId: id, draining: draining[memberIds.indexOf(id)] })), this.#rules.live(), 'live members')
    assert.ok(remaining.every(ms => ms !== -1), 'every record has a ttl')
    const listed = next(1)[0] as string[]
    assert.deepEqual(live.filter(id => !listed.includes(id)), [], 'live members are in the set of members')
  }

  async #resolve (registry: RegistryName, destinationId: string, flags: { claimOnMiss: boolean, reassignOrphans: boolean }): Promise<void> {
    const remembered = registry === 'cached' ? this.#remembered.get(destinationId) : undefined
    const { claimOnMiss, reassignOrphans } = flags
    const resolved = await this.#registries[registry].resolveDestination(destinationId, { claimOnMiss, reassignOrphans })
    if (remembered !== undefined) {
      this.#note('cached')
      assert.ok(resolved !== null && remembered.includes(resolved.memberId), `${resolved?.memberId} is one of the cached ${remembered.join()}`)
      assert.equal(resolved.reassigned, false)
      return
    }
    const verdict = this.#rules.judge(destinationId, flags)
    await this.#settle(destinationId, verdict, resolved)
    if (registry === 'cached' && resolved !== null) this.#remembered.set(destinationId, verdict.kind === 'serve' ? verdict.anyOf : [resolved.memberId])
  }

  /** Several callers at once, the caching registry too unless it would answer from its cache. */
  async #race (destinationId: string): Promise<void> {
    const { plain, cached } = this.#registries
    const callers = this.#remembered.has(destinationId) ? [plain, plain] : [plain, cached, plain, cached]
    const flags = { claimOnMiss: true, reassignOrphans: true }
    const verdict = this.#rules.judge(destinationId, flags)
    const answers = await Promise.all(callers.map(caller => caller.resolveDestination(destinationId, flags)))
    if (verdict.kind === 'bind') {
      assert.equal(new Set(answers.map(answer => answer?.memberId)).size, 1, 'all racers get one pod')
      assert.equal(answers.filter(answer => answer?.reassigned).length, verdict.previous === null ? 0 : 1, 'one racer reassigned')
    }
    const winner = answers.find(answer => answer?.reassigned) ?? answers[0] ?? null
    await this.#settle(destinationId, verdict, winner)
    for (const answer of answers) {
      if (verdict.kind === 'serve') assert.ok(answer !== null && verdict.anyOf.includes(answer.memberId))
      if (verdict.kind === 'none') assert.equal(answer, null)
    }
    if (callers.includes(cached) && winner !== null) this.#remembered.set(destinationId, verdict.kind === 'serve' ? verdict.anyOf : [winner.memberId])
  }

  async #settle (destinationId: string, verdict: Verdict, resolved: ResolvedDestination | null): Promise<void> {
    this.#note(verdict.kind === 'bind' && verdict.previous !== null ? 'reassign' : verdict.kind)
    if (verdict.kind === 'none') {
      assert.equal(resolved, null)
      return
    }
    assert.ok(resolved !== null && verdict.anyOf.includes(resolved.memberId), `${resolved?.memberId} is one of ${verdict.anyOf.join()}`)
    if (verdict.kind === 'bind') {
      assert.equal(resolved.reassigned, verdict.previous !== null)
      assert.deepEqual(resolved.previous?.sort(), verdict.previous ?? undefined)
      this.#rules.bind(destinationId, resolved.memberId)
      return
    }
    assert.deepEqual([resolved.reassigned, resolved.previous], [false, undefined])
    const before = this.#rules.podsOf(destinationId).length
    this.#rules.prune(destinationId)
    const left = this.#rules.podsOf(destinationId).length
    if (left < before) this.#note('prune')
    await until(async () => await this.#redis.scard(this.#key('destination', destinationId)) <= left, 'dead pods beside live ones are pruned')
  }

  async #list (registry: RegistryName): Promise<void> {
    const live = await this.#registries[registry].listLiveMembers()
    assert.deepEqual(live.map(({ memberId, draining }) => ({ memberId, draining })), this.#rules.live())
    await until(async () => await this.#redis.scard(this.#key('members')) <= live.length, 'ids of dead members are pruned')
  }

  async #writePlainly (memberId: string, isDraining?: boolean): Promise<void> {
    const key = this.#key('member', memberId)
    const write = this.#redis.multi().sadd(this.#key('members'), memberId).hset(key, 'address', `http://${memberId}:1`, 'load', '1').expire(key, 30)
    if (isDraining === true) write.hset(key, 'draining', '1')
    if (isDraining === false) write.hdel(key, 'draining')
    await write.exec()
    this.#rules.writePlainly(memberId, isDraining)
  }

  async #expire (memberId: string, byTtl: boolean): Promise<void> {
    const key = this.#key('member', memberId)
    if (byTtl) await this.#redis.pexpire(key, 1)
    else await this.#redis.del(key)
    await until(async () => await this.#redis.exists(key) === 0, 'the record has expired')
    this.#rules.expire(memberId)
  }

  #forgetOwn (registry: RegistryName, destinationId: string): void {
    if (registry === registryNames[0]) this.#remembered.delete(destinationId)
  }

  #note (what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  #key (...parts: string[]): string {
    return [this.#keyPrefix, ...parts].join(':')
  }
}
