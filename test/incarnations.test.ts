import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import type { Member, Registry, ResolvedLock } from '../src/index.ts'
import { watchScripts } from './support/script-client.ts'
import type { ScriptClient } from './support/script-client.ts'
import { setScene } from './support/store.ts'
import type { Scene } from './support/store.ts'

type Word = 'register' | 'registerInVain' | 'beat' | 'drain' | 'undrain' | 'add' | 'lock' | 'sharedLock' | 'unlock' | 'deregister' | 'expire'
type Turn = { who: 'old' | 'new' | 'store', word: Word }

/** Every order of two processes' words that keeps the order of each. */
function interleave (a: Turn[], b: Turn[]): Turn[][] {
  const [firstA, ...restA] = a
  const [firstB, ...restB] = b
  if (firstA === undefined) return [b]
  if (firstB === undefined) return [a]
  return [...interleave(restA, b).map(rest => [firstA, ...rest]), ...interleave(a, restB).map(rest => [firstB, ...rest])]
}

/** The same with the expiry of the record in each place. */
function withExpiry (orders: Turn[][]): Turn[][] {
  const expiry: Turn = { who: 'store', word: 'expire' }
  return orders.flatMap(order => order.map((_, at) => [...order.slice(0, at + 1), expiry, ...order.slice(at + 1)]))
}

function turns (who: 'old' | 'new', ...words: Word[]): Turn[] {
  return words.map(word => ({ who, word }))
}

/** Two processes of one pod and what is to be true of them. */
class Pair {
  readonly #scene: Scene
  readonly #memberId: string
  readonly #watches: Record<'old' | 'new', ScriptClient>
  readonly #members: Record<'old' | 'new', Member>
  readonly #wantsDraining = { old: false, new: false }
  readonly #locks = new Map<string, 'old' | 'new'>()
  /** Who registered last, until it deregisters. */
  #newest: 'old' | 'new' | undefined
  /** False while the record is gone, or may be that of the other, until the newest writes again. */
  #isSettled = false

  constructor (scene: Scene, memberId: string) {
    this.#scene = scene
    this.#memberId = memberId
    this.#watches = { old: watchScripts(scene.raw), new: watchScripts(scene.raw) }
    const member = (name: 'old' | 'new'): Member => scene.member(memberId, { redis: this.#watches[name].client, address: `http://${name}.test:1` })
    this.#members = { old: member('old'), new: member('new') }
  }

  async close (): Promise<void> {
    await Promise.all([this.#members.old.close(), this.#members.new.close()])
  }

  async take ({ who, word }: Turn): Promise<void> {
    if (who === 'store') {
      await this.#scene.raw.del(this.#scene.key('member', this.#memberId))
      this.#isSettled = false
      return
    }
    const member = this.#members[who]
    const isNewest = this.#newest === who
    const isOutdone = this.#newest !== undefined && !isNewest
    switch (word) {
      case 'register':
        await member.register()
        this.#newest = who
        this.#isSettled = true
        break
      case 'registerInVain': // it never reaches the store, and the process cannot tell
        this.#watches[who].intercept = () => { throw new Error('the connection broke') }
        await assert.rejects(member.register(), { code: 'PLT_COORDINATOR_UNAVAILABLE' })
        this.#watches[who].intercept = () => {}
        break
      case 'beat': {
        const isRenewed = await member.heartbeat()
        if (isNewest) this.#isSettled = true
        if (isNewest) assert.equal(isRenewed, true)
        if (isOutdone && this.#isSettled) assert.equal(isRenewed, false)
        break
      }
      case 'drain':
      case 'undrain': {
        this.#wantsDraining[who] = word === 'drain'
        const isWritten = await member.setDraining(word === 'drain')
        if (isNewest) this.#isSettled = true
        if (isNewest) assert.equal(isWritten, true)
        if (isOutdone && this.#isSettled) assert.equal(isWritten, false)
        break
      }
      case 'add': {
        const isAdded = await member.addToDestination('tenant-1')
        if (isNewest && this.#isSettled) assert.equal(isAdded, !this.#wantsDraining[who])
        if (isOutdone && this.#isSettled) assert.equal(isAdded, false)
        break
      }
      case 'lock':
      case 'sharedLock':
        await this.#lock(who, `${this.#memberId}: ${word === 'lock' ? who : 'shared'}`, isOutdone)
        break
      case 'unlock': {
        const lockId = `${this.#memberId}: shared`
        const isOwn = this.#locks.get(lockId) === who
        const isReleased = await member.unregisterLock(lockId)
        if (!isOwn) assert.equal(isReleased, false)
        if (isOwn) this.#locks.delete(lockId)
        break
      }
      case 'deregister': {
        const isRemoved = await member.deregister()
        for (const [lockId, holder] of this.#locks) if (holder === who) this.#locks.delete(lockId)
        if (isOutdone && this.#isSettled) assert.equal(isRemoved, false)
        if (isNewest) {
          if (this.#isSettled) assert.equal(isRemoved, true)
          assert.equal(await this.#scene.raw.exists(this.#scene.key('member', this.#memberId)), 0)
          this.#newest = undefined
        }
        break
      }
      default:
        throw new Error(`No turn for ${word}`)
    }
  }

  /** The newest registration stands: address, life, draining flag, locks; and what there is is never immortal. */
  async check (registry: Registry): Promise<void> {
    const { raw, key } = this.#scene
    const record = await raw.hgetall(key('member', this.#memberId))
    const remainingMs = await raw.pttl(key('member', this.#memberId))
    assert.ok(remainingMs === -2 || remainingMs > 0, 'the record has a ttl')
    if (this.#newest === undefined || !this.#isSettled) return
    const newest = this.#members[this.#newest]
    assert.deepEqual(
      { address: record.address, incarnation: record.incarnation, isDraining: record.draining === '1' },
      { address: newest.address, incarnation: newest.incarnation, isDraining: this.#wantsDraining[this.#newest] })
    assert.ok(remainingMs > 25_000, `the record lives on, for ${remainingMs} ms`)
    assert.equal(await raw.sismember(key('members'), this.#memberId), 1)
    for (const [lockId, holder] of this.#locks) {
      const expected: ResolvedLock | null = holder === this.#newest ? { memberId: this.#memberId, address: newest.address } : null
      assert.deepEqual(await registry.resolveLock(lockId), expected, lockId)
    }
  }

  /** Both beat once more, the older one first: whatever happened before, the newest has its place. */
  async finish (registry: Registry): Promise<void> {
    if (this.#newest === undefined) return
    const older = this.#newest === 'old' ? 'new' : 'old'
    await this.#members[older].heartbeat()
    assert.equal(await this.#members[this.#newest].heartbeat(), true)
    assert.equal(await this.#members[older].heartbeat(), false)
    this.#isSettled = true
    await this.check(registry)
  }

  async #lock (who: 'old' | 'new', lockId: string, isOutdone: boolean): Promise<void> {
    try {
      await this.#members[who].registerLock(lockId, 'tenant-1')
    } catch (error) {
      assert.ok(isCoordinatorError(error, 'PLT_COORDINATOR_SUPERSEDED') || isCoordinatorError(error, 'PLT_COORDINATOR_NOT_REGISTERED'), String(error))
      assert.notEqual(this.#newest, who)
      return
    }
    if (isOutdone && this.#isSettled) assert.fail('a process that was superseded minted a lock')
    // While the record is gone the store cannot tell the older process from the newer: only the lock of the newer is to stay.
    const isTheirs = this.#locks.get(lockId) === this.#newest && isOutdone
    if (!isTheirs) this.#locks.set(lockId, who)
  }
}

async function playAll (t: TestContext, orders: Turn[][]): Promise<void> {
  const scene = setScene(t)
  const registry = scene.registry({ redis: scene.raw })
  for (const [at, order] of orders.entries()) {
    const pair = new Pair(scene, `pod-${at}`)
    let turnCount = 0
    try {
      for (const turn of order) {
        turnCount++
        await pair.take(turn)
        await pair.check(registry)
      }
      await pair.finish(registry)
    } catch (error) {
      const told = order.map(({ who, word }) => `${who} ${word}`)
      throw new Error(`Order: ${told.join(', ')}; it failed at turn ${turnCount} of ${order.length}, or after the last`, { cause: error })
    }
    await pair.close()
  }
  t.diagnostic(`${orders.length} orders`)
}

test('incarnations: in every order of two processes of one pod the newer registration stays (G21)', async t => {
  const orders = interleave(
    turns('old', 'register', 'beat', 'drain', 'add', 'lock', 'deregister'),
    turns('new', 'register', 'lock', 'drain', 'beat', 'add'))
  assert.equal(orders.length, 462)
  await playAll(t, orders)
})

test('incarnations: a process that registers, leaves and registers again is the newer one each time', async t => {
  await playAll(t, interleave(
    turns('old', 'register', 'lock', 'deregister', 'register', 'beat'),
    turns('new', 'register', 'beat', 'lock', 'deregister')))
})

test('incarnations: of two processes that mint the same lock the newer one keeps it (G30)', async t => {
  await playAll(t, interleave(
    turns('old', 'register', 'sharedLock', 'beat', 'unlock', 'deregister'),
    turns('new', 'register', 'sharedLock', 'beat', 'add')))
})

test('incarnations: whenever the record expires, the newer process has its place back, also after an older one beat first', async t => {
  await playAll(t, withExpiry(interleave(turns('old', 'register', 'lock', 'beat', 'drain'), turns('new', 'register', 'lock', 'beat'))))
})

test('incarnations: whenever the record expires, an older process that leaves takes nothing along', async t => {
  await playAll(t, withExpiry(interleave(turns('old', 'register', 'beat', 'deregister'), turns('new', 'register', 'drain', 'lock', 'add'))))
})

test('incarnations: whenever the record expires, the newer process keeps a lock that an older one mints too', async t => {
  await playAll(t, withExpiry(interleave(turns('old', 'register', 'sharedLock', 'beat'), turns('new', 'register', 'sharedLock', 'beat'))))
})

test('incarnations: a process whose register() was never answered does not outrank one whose was, whenever the record expires', async t => {
  await playAll(t, withExpiry(interleave(turns('old', 'registerInVain', 'beat', 'sharedLock', 'drain', 'beat'), turns('new', 'register', 'beat', 'sharedLock'))))
})
