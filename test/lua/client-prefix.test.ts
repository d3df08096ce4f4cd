import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import { byRegistry, heldLock, setScriptScene, unranked } from '../support/script-scene.ts'

test('every script: a keyPrefix of the client comes before each key, and once before the channel', async t => {
  const clientPrefix = `ns-${randomBytes(6).toString('hex')}:`
  // All that `scene.raw` sees lies under the client's prefix; the scripts do not know it.
  const scene = await setScriptScene(t, { clientPrefix })
  const { writer } = await scene.register('pod-1', 'one', { load: 5 })
  await scene.register('pod-2', 'two')
  await scene.rawMember('plain', { load: 9 })
  assert.deepEqual(await scene.heard(), ['m pod-1 up', 'm pod-2 up'])
  assert.deepEqual(await scene.plain.declareFeatures({ memberIndex: '1' }), ['0'])
  assert.equal((await scene.claim('d', ['pod-1', 'pod-2'], { isIndexed: true })).live[0]?.memberId, 'pod-2')
  assert.equal((await scene.claim('d', ['pod-1'])).status, 'bound')
  assert.equal(await scene.indexed.bind('d', unranked('pod-1', 'one')), 'bound')
  await scene.bindRaw('d', 'gone')
  await scene.bindRaw('lost', 'gone')
  await scene.raw.sadd(scene.key('owned', 'gone'), 'd', 'lost', 'e')
  await scene.raw.sadd(scene.key('members'), 'gone')
  assert.equal((await scene.claim('lost', ['plain'], { isIndexed: true })).status, 'reassigned')
  const read = await scene.plain.resolve(['d', 'lost', 'unknown'])
  assert.deepEqual(read.map(decision => decision instanceof Error ? decision : [decision.status, decision.live.length, decision.dead]), [
    ['bound', 2, ['gone']], ['bound', 1, []], ['empty', 0, []]
  ])
  assert.equal(await scene.indexed.prune('d'), 1)
  assert.deepEqual((await scene.indexed.listOwned('gone')), ['e'])
  assert.deepEqual(await scene.indexed.listOwned('pod-2'), ['d'])
  const page = await scene.plain.listMembers()
  assert.ok(page.status === 'page')
  assert.deepEqual([page.live.length, page.dead], [3, ['gone']])
  assert.equal(await scene.plain.pruneMembers(['gone']), 1)
  assert.deepEqual((await scene.plain.readMemberIds()).sort(), ['plain', 'pod-1', 'pod-2'])
  assert.deepEqual(await scene.heard(), ['d d', 'd lost', 'd d'])

  assert.equal(await scene.pod.registerLock(writer, heldLock('l', 'd'), 60_000), 'registered')
  assert.deepEqual(await scene.plain.resolveLock('l'), { memberId: 'pod-1', address: 'http://pod-1.test:3000' })
  assert.equal((await scene.beat(writer, { isDraining: true, lockIds: ['l'] })).status, 'beat')
  assert.equal(await scene.pod.releaseLocks(writer, ['l']), 1)
  assert.equal(await scene.indexed.unbind('d', byRegistry('pod-2')), 'unbound')
  assert.equal(await scene.plain.hasBinding('d'), true)
  assert.equal(await scene.indexed.deregisterDestination('d'), 1)
  assert.equal(await scene.deregister(writer), 'deregistered')

  assert.deepEqual(await scene.heard(), ['m pod-1 draining', 'd d', 'd d', 'm pod-1 down'])
  assert.deepEqual(await scene.keys(), ['destination:lost', 'features', 'member:plain', 'member:pod-2', 'members', 'owned:gone', 'owned:plain'])
  assert.deepEqual(await scene.raw.keys(`${scene.keyPrefix.slice(clientPrefix.length)}*`), [], 'no key is without the client’s prefix')
})
