import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import type { Registry } from '../src/index.ts'
import { setScene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

const oddIds = [
  'a', 'a:b', 'a:b:c', ':', '::', '{a}', '{}', 'a{b}c', '}', ' ', 'a b', ' a', 'a ', 'a\nb', 'a\r\nb', '\0', 'a\0', 'a\0b', 'é', 'e\u0301', 'ünï', '日本',
  '🙂', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '0', '-1', 'null', 'undefined', '[object Object]', '*', '?', '[a]', '\\', '%2f',
  '../a', 'members', 'destination:a', 'x'.repeat(10 * 1024), `${'x'.repeat(10 * 1024)}y`, 'A', '\ufeffa', '\u200ba'
]

test('ids: destinations with odd ids are kept apart by every operation', async t => {
  const scene = setScene(t)
  const memberIds = oddIds.map((_, i) => `pod-${i}`)
  for (const memberId of memberIds) await scene.rawMember(memberId)
  const registry = scene.registry({ memberIndex: true, cache: { ttl: 60_000 } })

  for (const [i, destinationId] of oddIds.entries()) {
    assert.equal(await registry.hasBinding(destinationId), false, JSON.stringify(destinationId.slice(0, 20)))
    assert.equal(await registry.addPodToDestination(destinationId, `pod-${i}`), true)
  }
  for (let pass = 0; pass < 2; pass++) { // the second one from the cache
    for (const [i, destinationId] of oddIds.entries()) {
      const resolved = await registry.resolveDestination(destinationId, both)
      assert.deepEqual(resolved, { address: `http://pod-${i}.test:3000`, memberId: `pod-${i}`, reassigned: false })
    }
  }
  for (const [i, destinationId] of oddIds.entries()) {
    assert.deepEqual((await registry.readBinding(destinationId)).map(pod => pod.memberId), [`pod-${i}`])
    assert.deepEqual(await registry.listOwned(`pod-${i}`), [destinationId])
    assert.deepEqual(await scene.pods(destinationId), [`pod-${i}`])
  }
  for (const [i, destinationId] of oddIds.entries()) {
    assert.equal(await (i % 2 === 0 ? registry.deregisterDestination(destinationId) : registry.removePodFromDestination(destinationId, `pod-${i}`)), true)
    assert.equal(await registry.resolveDestination(destinationId), null)
  }
  assert.deepEqual((await scene.keys()).filter(key => /^(destination|owned)/.test(key)), [])
})

test('ids: pods with odd memberIds are claimed, listed, reassigned and unbound', async t => {
  const scene = setScene(t)
  const memberIds = oddIds.filter(id => Buffer.byteLength(id) <= 256).sort()
  for (const memberId of memberIds) await scene.rawMember(memberId, { address: 'http://odd.test:3000' })
  const registry = scene.registry({ memberIndex: true, cache: false, strategy: 'round-robin' })

  assert.deepEqual((await registry.listLiveMembers()).map(member => member.memberId), memberIds)
  const owners = new Map<string, string>()
  for (let i = 0; i < memberIds.length; i++) {
    const resolved = await registry.resolveDestination(`d${i}`, both)
    owners.set(resolved?.memberId ?? '', `d${i}`)
  }
  assert.deepEqual([...owners.keys()].sort(), memberIds)

  for (const [memberId, destinationId] of owners) {
    assert.deepEqual(await registry.listOwned(memberId), [destinationId])
    assert.deepEqual(await scene.pods(destinationId), [memberId])
    assert.equal(await registry.addPodToDestination('shared', memberId), true)
    assert.equal(await registry.removePodFromDestination('shared', memberId), true)
    await scene.raw.del(scene.key('member', memberId))
    await scene.raw.srem(scene.key('members'), memberId)
  }
  await scene.rawMember('heir')
  for (const [memberId, destinationId] of owners) {
    assert.deepEqual(await registry.resolveDestination(destinationId, both), {
      address: 'http://heir.test:3000', memberId: 'heir', reassigned: true, previous: [memberId]
    })
    assert.deepEqual(await registry.listOwned(memberId), [])
  }
})

test('ids: locks with odd ids are kept apart', async t => {
  const scene = setScene(t)
  const registry = scene.registry()
  for (const memberId of ['pod-0', 'pod-1', 'pod-2']) await scene.rawMember(memberId)
  for (const [i, lockId] of oddIds.entries()) await scene.raw.hset(scene.key('lock', lockId), { podId: `pod-${i % 3}`, destinationId: 'd' })

  for (const [i, lockId] of oddIds.entries()) {
    assert.deepEqual(await registry.resolveLock(lockId), { address: `http://pod-${i % 3}.test:3000`, memberId: `pod-${i % 3}` })
  }
})

test('ids: the longest ids that are allowed work', async t => {
  const scene = setScene(t)
  const memberId = 'm'.repeat(256)
  const destinationId = 'é'.repeat(8 * 1024)
  await scene.rawMember(memberId, { address: 'http://long.test:3000' })
  const registry = scene.registry({ memberIndex: true })

  assert.deepEqual(await registry.resolveDestination(destinationId, both), { address: 'http://long.test:3000', memberId, reassigned: false })
  assert.deepEqual(await registry.listOwned(memberId), [destinationId])
  assert.equal(await registry.resolveLock('l'.repeat(16 * 1024)), null)
})

const badIds: unknown[] = [undefined, null, '', 0, 7, NaN, true, {}, [], ['a'], Symbol('a'), () => 'a', Buffer.from('a'), '\ud800', 'a\udc00b', 'x'.repeat(16 * 1024 + 1), 'é'.repeat(8 * 1024 + 1)]

type Call = (registry: Registry, id: string) => Promise<unknown>
const callsByDestination: Record<string, Call> = {
  resolveDestination: (registry, id) => registry.resolveDestination(id, both),
  resolveLock: (registry, id) => registry.resolveLock(id),
  addPodToDestination: (registry, id) => registry.addPodToDestination(id, 'pod-1'),
  removePodFromDestination: (registry, id) => registry.removePodFromDestination(id, 'pod-1'),
  hasBinding: (registry, id) => registry.hasBinding(id),
  readBinding: (registry, id) => registry.readBinding(id),
  deregisterDestination: (registry, id) => registry.deregisterDestination(id),
  pickMember: (registry, id) => registry.pickMember({ destinationId: id })
}
const callsByMember: Record<string, Call> = {
  addPodToDestination: (registry, id) => registry.addPodToDestination('d', id),
  removePodFromDestination: (registry, id) => registry.removePodFromDestination('d', id),
  listOwned: (registry, id) => registry.listOwned(id)
}

const isInvalidId = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_ID') && error.statusCode === 400 &&
  /^Expected (destinationId|memberId|lockId) to /.test(error.message) && error.message.length < 500

test('ids: a missing, empty, non-string, ill-formed or too long id is a coded error, and no key is written', async t => {
  const scene = setScene(t)
  const registry = scene.registry({ memberIndex: true })
  for (const id of badIds) {
    for (const [name, call] of Object.entries(callsByDestination)) {
      if (name === 'pickMember' && id === undefined) continue // it may do without
      await assert.rejects(call(registry, id as string), isInvalidId, `${name} ${typeof id}`)
    }
  }
  for (const id of [...badIds, 'm'.repeat(257)]) {
    for (const [name, call] of Object.entries(callsByMember)) await assert.rejects(call(registry, id as string), isInvalidId, `${name} ${typeof id}`)
  }
  assert.deepEqual(await scene.keys(), [])
})

test('ids: an id that is no string is refused although a destination of that text is cached', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()
  await registry.resolveDestination('7', both)
  await registry.resolveDestination('a', both)

  for (const id of [7, ['a'], { toString: () => 'a' }]) await assert.rejects(registry.resolveDestination(id as unknown as string), isInvalidId)
})
