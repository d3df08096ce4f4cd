import assert from 'node:assert/strict'
import test from 'node:test'
import { setScene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

test('plain records: pods written with SADD, HSET and EXPIRE alone work in every operation', async t => {
  const scene = setScene(t)
  await scene.rawMember('pod-1', { load: 3 })
  const registry = scene.registry({ memberIndex: true, cache: false })

  assert.deepEqual(await registry.listLiveMembers(), [{ memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 3, draining: false }])
  assert.deepEqual(await registry.pickMember(), { memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 3, draining: false })
  assert.deepEqual(await registry.resolveDestination('d', both), { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
  assert.equal(await registry.addPodToDestination('e', 'pod-1'), true)
  assert.deepEqual((await registry.listOwned('pod-1')).sort(), ['d', 'e'])
  assert.deepEqual(await registry.readBinding('d'), [
    { memberId: 'pod-1', isLive: true, member: { memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 3, draining: false } }
  ])
  assert.equal(await registry.removePodFromDestination('e', 'pod-1'), true)
  assert.equal(await registry.hasBinding('e'), false)
  await scene.raw.hset(scene.key('lock', 'l'), { podId: 'pod-1', destinationId: 'd' })
  assert.deepEqual(await registry.resolveLock('l'), { address: 'http://pod-1.test:3000', memberId: 'pod-1' })
  assert.ok(await scene.raw.ttl(scene.key('member', 'pod-1')) > 0, 'the record still expires')

  await scene.rawMember('pod-2')
  await scene.raw.del(scene.key('member', 'pod-1'))
  assert.deepEqual(await registry.resolveDestination('d', both), {
    address: 'http://pod-2.test:3000', memberId: 'pod-2', reassigned: true, previous: ['pod-1']
  })
  assert.deepEqual(await registry.listOwned('pod-1'), [])
  assert.deepEqual(await registry.listOwned('pod-2'), ['d'])
  assert.equal(await registry.resolveLock('l'), null)
})

for (const [text, isDraining] of [['1', true], ['true', true], ['yes', true], ['0', false], ['false', false], ['', false]] as const) {
  test(`plain records: draining '${text}' ${isDraining ? 'keeps new destinations away' : 'means nothing'}`, async t => {
    const scene = setScene(t)
    await scene.rawMember('pod-1', { draining: text })
    const registry = scene.registry()

    assert.deepEqual((await registry.listLiveMembers()).map(member => member.draining), [isDraining])
    assert.equal((await registry.resolveDestination('d', both))?.memberId, isDraining ? undefined : 'pod-1')
    assert.equal(await registry.addPodToDestination('e', 'pod-1'), !isDraining)
    assert.deepEqual(await scene.pods('d'), isDraining ? [] : ['pod-1'])
  })
}

test('plain records: a load that is missing or no finite number is never the idlest', async t => {
  const scene = setScene(t)
  for (const [i, load] of ['NaN', 'nan', 'Infinity', '-Infinity', 'inf', '-inf', '', 'text', '-1e999', '1e999'].entries()) {
    await scene.rawMember(`odd-${i}`, { load })
  }
  await scene.rawMember('missing')
  await scene.raw.hdel(scene.key('member', 'missing'), 'load')
  await scene.rawMember('sane', { load: 1000 })
  const registry = scene.registry({ strategy: 'least-loaded' })

  for (let i = 0; i < 10; i++) assert.equal((await registry.resolveDestination(`d${i}`, both))?.memberId, 'sane')
  assert.equal((await registry.pickMember())?.memberId, 'sane')
})

test('plain records: a record without an address is no pod', async t => {
  const scene = setScene(t)
  await scene.raw.hset(scene.key('member', 'half'), { load: 0 })
  await scene.raw.sadd(scene.key('members'), 'half')
  await scene.raw.sadd(scene.key('destination', 'd'), 'half')
  await scene.liveMember('pod-1')
  const registry = scene.registry({ cache: false })

  assert.equal(await registry.resolveDestination('d'), null)
  assert.equal(await registry.addPodToDestination('e', 'half'), false)
  assert.deepEqual((await registry.listLiveMembers()).map(member => member.memberId), ['pod-1'])
  assert.deepEqual(await registry.readBinding('d'), [{ memberId: 'half', isLive: false, member: null }])
  assert.deepEqual(await registry.resolveDestination('d', both), {
    address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: true, previous: ['half']
  })
})
