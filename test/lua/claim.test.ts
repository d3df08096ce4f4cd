import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../../src/errors.ts'
import { manyIds, setScriptScene, trickyIds } from '../support/script-scene.ts'

test('claim.lua: a destination without pods is given one, and nothing is published', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { load: 3 })
  await scene.heard()

  const decision = await scene.claim('d', ['pod-1'])

  const { remainingMs = 0, ...pod } = decision.live[0] ?? {}
  assert.equal(decision.status, 'claimed')
  assert.deepEqual(pod, { memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 3, pending: 1, draining: false })
  assert.ok(remainingMs > 0 && remainingMs <= 30_000)
  assert.deepEqual([decision.live.length, decision.dead], [1, []])
  assert.deepEqual(decision.figures, [{ memberId: 'pod-1', load: 3, pending: 1 }])
  assert.deepEqual(await scene.keys(), ['destination:d', 'features', 'member:pod-1', 'members'])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
  assert.equal(await scene.raw.pttl(scene.key('destination', 'd')), -1)
  assert.deepEqual(await scene.heard(), [])
})

test('claim.lua: a bound destination comes back as it is, draining and dead pods included', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one', { isDraining: true })
  await scene.register('pod-2', 'two')
  await scene.bindRaw('d', 'pod-1', 'gone')
  await scene.heard()

  const decision = await scene.claim('d', ['pod-2'])

  assert.equal(decision.status, 'bound')
  assert.deepEqual(decision.live.map(({ memberId, draining }) => [memberId, draining]), [['pod-1', true]])
  assert.deepEqual([decision.dead, decision.figures], [['gone'], []])
  assert.deepEqual(await scene.pods('d'), ['gone', 'pod-1'])
  assert.equal((await scene.record('pod-2'))['pending'], '0')
  assert.deepEqual(await scene.heard(), [])
})

test('claim.lua: pods that are all dead are replaced, and it is published', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('d', 'gone-1', 'gone-2')
  await scene.heard()

  const decision = await scene.claim('d', ['pod-1'])

  assert.equal(decision.status, 'reassigned')
  assert.deepEqual(decision.live.map(({ memberId }) => memberId), ['pod-1'])
  assert.deepEqual(decision.dead.sort(), ['gone-1', 'gone-2'])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
  assert.deepEqual(await scene.heard(), ['d d'])
})

test('claim.lua: each flag allows its own case alone', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('lost', 'gone')
  await scene.heard()
  const before = await scene.record('pod-1')

  const unasked = await scene.claim('new', ['pod-1'], { claimOnMiss: false })
  const unwanted = await scene.claim('lost', ['pod-1'], { reassignOrphans: false })

  assert.deepEqual(unasked, { status: 'empty', live: [], dead: [], figures: [] })
  assert.deepEqual(unwanted, { status: 'orphaned', live: [], dead: ['gone'], figures: [] })
  assert.deepEqual(await scene.pods('new'), [])
  assert.deepEqual(await scene.pods('lost'), ['gone'])
  assert.deepEqual(await scene.record('pod-1'), before)
  assert.deepEqual(await scene.heard(), [])
  assert.equal((await scene.claim('new', ['pod-1'], { reassignOrphans: false })).status, 'claimed')
  assert.equal((await scene.claim('lost', ['pod-1'], { claimOnMiss: false })).status, 'reassigned')
})

test('claim.lua: candidates that are dead, draining or without an address are refused, and nothing is written', async t => {
  const scene = await setScriptScene(t)
  await scene.register('draining', 'one', { isDraining: true })
  await scene.rawMember('plain-draining', { draining: 'true' })
  await scene.rawMember('no-address', { address: '' })
  await scene.bindRaw('lost', 'gone')
  await scene.heard()
  const candidates = ['draining', 'plain-draining', 'no-address', 'gone', 'never-there']
  const keys = await scene.keys()

  const first = await scene.claim('new', candidates, { isIndexed: true })
  const orphaned = await scene.claim('lost', candidates, { isIndexed: true })
  const nobody = await scene.claim('new', [], { isIndexed: true })

  assert.deepEqual(first, { status: 'refused', live: [], dead: [], figures: [] })
  assert.deepEqual(orphaned, { status: 'refused', live: [], dead: ['gone'], figures: [] })
  assert.deepEqual(nobody, { status: 'refused', live: [], dead: [], figures: [] })
  assert.deepEqual(await scene.keys(), keys)
  assert.deepEqual(await scene.pods('lost'), ['gone'])
  assert.equal((await scene.record('draining'))['pending'], '0')
  assert.deepEqual(await scene.heard(), [])
})

test('claim.lua: draining written as no text, 0 or false is none, in candidates as in bound pods', async t => {
  const scene = await setScriptScene(t)
  for (const [draining, isDraining] of [['', false], ['0', false], ['false', false], ['1', true], ['true', true]] as const) {
    await scene.rawMember('pod-1', { draining })
    assert.equal((await scene.claim(`new-${draining}`, ['pod-1'])).status, isDraining ? 'refused' : 'claimed', `'${draining}'`)
    await scene.bindRaw('bound', 'pod-1')
    assert.equal((await scene.claim('bound', [])).live[0]?.draining, isDraining, `'${draining}'`)
  }
})

test('claim.lua: of 50 racing claims one binds and all return its pod', async t => {
  const scene = await setScriptScene(t)
  for (let at = 0; at < 50; at++) await scene.register(`pod-${at}`, 'one')

  const decisions = await Promise.all(manyIds(50, 'pod').map(memberId => scene.claim('d', [memberId])))

  const pods = new Set(decisions.flatMap(({ live }) => live.map(({ memberId }) => memberId)))
  assert.equal(pods.size, 1)
  assert.deepEqual(await scene.pods('d'), [...pods])
  assert.equal(decisions.filter(({ status }) => status === 'claimed').length, 1)
  assert.equal(decisions.filter(({ status }) => status === 'bound').length, 49)
})

test('claim.lua: with the member index a claim adds to the new pod what it takes from the dead ones', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('lost', 'gone-1', 'gone-2')
  for (const memberId of ['gone-1', 'gone-2']) await scene.raw.sadd(scene.key('owned', memberId), 'lost', 'other')

  await scene.claim('new', ['pod-1'], { isIndexed: true })
  await scene.claim('lost', ['pod-1'], { isIndexed: true })

  assert.deepEqual(await scene.owned('pod-1'), ['lost', 'new'])
  assert.deepEqual(await scene.owned('gone-1'), ['other'])
  assert.deepEqual(await scene.owned('gone-2'), ['other'])
})

test('claim.lua: without the member index no owned set is touched', async t => {
  const scene = await setScriptScene(t)
  await scene.register('pod-1', 'one')
  await scene.bindRaw('lost', 'gone')
  await scene.raw.sadd(scene.key('owned', 'gone'), 'lost')

  await scene.claim('new', ['pod-1'])
  await scene.claim('lost', ['pod-1'])

  assert.deepEqual(await scene.owned('pod-1'), [])
  assert.deepEqual(await scene.owned('gone'), ['lost'])
})

for (const isIndexed of [false, true]) {
  test(`claim.lua: 20,000 dead pods are replaced in one go, member index ${isIndexed ? 'on' : 'off'} (G16)`, async t => {
    const scene = await setScriptScene(t)
    await scene.register('pod-1', 'one')
    await scene.bindRaw('d', ...manyIds(20_000))
    await scene.heard()

    const decision = await scene.claim('d', ['pod-1'], { isIndexed })

    assert.equal(decision.status, 'reassigned')
    assert.equal(new Set(decision.dead).size, 20_000)
    assert.deepEqual(await scene.pods('d'), ['pod-1'])
    assert.deepEqual(await scene.owned('pod-1'), isIndexed ? ['d'] : [])
    assert.deepEqual(await scene.heard(), ['d d'])
  })
}

test('claim.lua: ids that look alike, or like keys or replies, are claimed apart, and messages carry them whole', async t => {
  const scene = await setScriptScene(t)
  for (const id of trickyIds) await scene.raw.hset(scene.key('member', id), 'address', 'http://x')
  for (const id of trickyIds) await scene.bindRaw(id, 'gone')

  for (let from = 0; from < trickyIds.length; from += 32) {
    const ids = trickyIds.slice(from, from + 32)
    const requests = ids.map(id => ({ destinationId: id, claimOnMiss: true, reassignOrphans: true, memberIds: [id] }))
    const decisions = await scene.indexed.claim(requests)
    for (const [at, decision] of decisions.entries()) {
      assert.ok(!isCoordinatorError(decision))
      assert.deepEqual([decision.status, decision.live[0]?.memberId, decision.dead], ['reassigned', ids[at], ['gone']])
    }
  }

  for (const id of trickyIds) {
    assert.deepEqual(await scene.pods(id), [id])
    assert.deepEqual(await scene.owned(id), [id])
  }
  assert.deepEqual(await scene.heard(), trickyIds.map(id => `d ${id}`))
})
