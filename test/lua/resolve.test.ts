import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { isCoordinatorError } from '../../src/errors.ts'
import { byRegistry, manyIds, setScriptScene, trickyIds } from '../support/script-scene.ts'

test('resolve.lua: an unknown destination is empty, one whose pods are dead is orphaned, and no key is made', async t => {
  const scene = await setScriptScene(t)
  await scene.bindRaw('lost', 'gone-1')
  const { destinationBase, memberBase } = scene.names

  const reply = await scene.run('resolve', [destinationBase, memberBase], ['unknown', 'lost'])

  assert.deepEqual(reply, [[], ['empty', 0, 0, 'orphaned', 0, 1, 'gone-1']])
  assert.deepEqual(await scene.keys(), ['destination:lost'])
  assert.deepEqual(await scene.heard(), [])
})

test('resolve.lua: a bound destination comes with each live pod as its record says and with the dead ids', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('pod-1', { load: '0.25', incarnation: 'one', pending: '2' }, 20)
  await scene.bindRaw('d', 'pod-1')
  const { destinationBase, memberBase } = scene.names

  const reply = await scene.run('resolve', [destinationBase, memberBase], ['d']) as [unknown[], unknown[]]

  const ttlMs = reply[0].pop() as number
  assert.deepEqual(reply, [['pod-1', 'http://pod-1.test:3000', '0.25', '2', ''], ['bound', 1, 1, 0]])
  assert.ok(ttlMs > 1000 && ttlMs <= 20_000, `remaining ttl is ${ttlMs}`)

  await scene.bindRaw('d', 'gone')
  const [decision] = await scene.plain.resolve(['d'])
  assert.ok(decision && !isCoordinatorError(decision))
  assert.deepEqual(decision.live.map(({ memberId }) => memberId), ['pod-1'])
  assert.deepEqual(decision.dead, ['gone'])
  assert.deepEqual(decision.figures, [])
  assert.deepEqual(await scene.pods('d'), ['gone', 'pod-1'], 'a dead pod is left to prune')
})

test('resolve.lua: a record that does not expire has no remaining ttl, one without load says so', async t => {
  const scene = await setScriptScene(t)
  await scene.raw.hset(scene.key('member', 'pod-1'), 'address', 'http://x')
  await scene.bindRaw('d', 'pod-1')
  const { destinationBase, memberBase } = scene.names

  assert.deepEqual(await scene.run('resolve', [destinationBase, memberBase], ['d']), [['pod-1', 'http://x', '', '', '', -1], ['bound', 1, 1, 0]])
  const [decision] = await scene.plain.resolve(['d'])
  assert.ok(decision && !isCoordinatorError(decision))
  assert.deepEqual(decision.live[0], { memberId: 'pod-1', address: 'http://x', load: NaN, pending: 0, draining: false, remainingMs: Infinity })
})

test('resolve.lua: draining is any text but none, 0 and false; a record without an address is dead', async t => {
  const scene = await setScriptScene(t)
  const flags = { a: '', b: '0', c: 'false', d: '1', e: 'true', f: 'yes' }
  for (const [memberId, draining] of Object.entries(flags)) await scene.rawMember(memberId, { draining })
  await scene.rawMember('no-address', { address: '' })
  await scene.raw.hset(scene.key('member', 'load-alone'), 'load', '1')
  await scene.bindRaw('d', ...Object.keys(flags), 'no-address', 'load-alone')

  const [decision] = await scene.plain.resolve(['d'])

  assert.ok(decision && !isCoordinatorError(decision))
  const draining = decision.live.filter(pod => pod.draining).map(({ memberId }) => memberId).sort()
  assert.deepEqual(draining, ['d', 'e', 'f'])
  assert.equal(decision.live.length, 6)
  assert.deepEqual(decision.dead.sort(), ['load-alone', 'no-address'])
})

test('resolve.lua: of 32 ids two that cannot be read answer with their error and the others with their pods', async t => {
  const scene = await setScriptScene(t)
  for (const memberId of ['pod-1', 'pod-2', 'pod-3']) await scene.rawMember(memberId)
  const ids = manyIds(32, 'd')
  for (const id of ids) await scene.bindRaw(id, 'pod-1')
  await scene.raw.set(scene.key('destination', 'd-3'), 'text', 'EX', 60)
  // The pods before the broken record were read already: none of them may stay in the reply.
  await scene.raw.set(scene.key('member', 'broken'), 'text', 'EX', 60)
  await scene.bindRaw('d-17', 'pod-2', 'pod-3', 'broken')

  const decisions = await scene.plain.resolve(ids)

  assert.equal(decisions.length, 32)
  for (const [at, decision] of decisions.entries()) {
    if (at === 3 || at === 17) {
      assert.ok(isCoordinatorError(decision, 'PLT_COORDINATOR_STORE_REFUSED'), `d-${at}`)
      assert.match(decision.message, /WRONGTYPE/)
    } else {
      assert.ok(!isCoordinatorError(decision), `d-${at}`)
      assert.deepEqual([decision.status, decision.live.map(({ memberId }) => memberId), decision.dead], ['bound', ['pod-1'], []], `d-${at}`)
    }
  }
})

test('resolve.lua: ids that look alike, or like keys or replies, are kept apart', async t => {
  const scene = await setScriptScene(t)
  for (const [at, id] of trickyIds.entries()) {
    await scene.raw.hset(scene.key('member', id), 'address', `http://${at}`, 'load', at)
    await scene.bindRaw(id, id)
  }

  for (let from = 0; from < trickyIds.length; from += 32) {
    const ids = trickyIds.slice(from, from + 32)
    const decisions = await scene.plain.resolve(ids)
    for (const [at, decision] of decisions.entries()) {
      assert.ok(!isCoordinatorError(decision))
      const found = decision.live.map(({ memberId, address }) => ({ memberId, address }))
      assert.deepEqual(found, [{ memberId: ids[at], address: `http://${from + at}` }])
    }
  }
})

test('resolve.lua: 20,000 dead pods and one live one are read in one go', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('pod-1')
  await scene.bindRaw('d', ...manyIds(20_000), 'pod-1')

  const [decision] = await scene.plain.resolve(['d'])

  assert.ok(decision && !isCoordinatorError(decision))
  assert.equal(decision.status, 'bound')
  assert.deepEqual(decision.live.map(({ memberId }) => memberId), ['pod-1'])
  assert.equal(new Set(decision.dead).size, 20_000)
})

for (const name of ['resolve', 'list-members', 'resolve-lock']) {
  test(`${name}.lua: runs where the server allows no write`, async t => {
    const scene = await setScriptScene(t)
    await scene.register('pod-1', 'one')
    await scene.bindRaw('d', 'pod-1', 'gone')
    await scene.raw.sadd(scene.key('members'), 'gone')
    await scene.raw.hset(scene.key('lock', 'd'), 'podId', 'pod-1')
    const text = readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8')
    const keys: Record<string, string[]> = {
      resolve: [scene.key('destination', ''), scene.key('member', '')],
      'list-members': [scene.key('members'), scene.key('member', '')],
      'resolve-lock': [scene.key('lock', ''), scene.key('member', '')]
    }
    const args = name === 'list-members' ? [] : ['d']

    const reply = await scene.raw.call('EVAL_RO', text, 2, ...keys[name] as string[], ...args) as unknown[]

    assert.ok(reply.flat().includes('pod-1'))
  })
}

test('resolve.lua, claim.lua: a bound plain record counts what was bound since its last EXPIRE or load, a Member what its beat left', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain', { load: 2, pending: '50' })
  await scene.register('pod-1', 'one')
  const key = scene.key('member', 'plain')
  await scene.raw.hset(scene.key('member', 'pod-1'), 'plainPending', '-1:0/99')
  await scene.bindRaw('d', 'plain', 'pod-1')
  const pending = async (): Promise<Record<string, number>> => {
    const [read] = await scene.plain.resolve(['d'])
    assert.ok(read && !isCoordinatorError(read))
    const claimed = await scene.claim('d', ['plain'])
    const figures = [read, claimed].map(({ live }) => Object.fromEntries(live.map(each => [each.memberId, each.pending])))
    assert.deepEqual(figures[0], figures[1])
    return figures[0] as Record<string, number>
  }

  assert.deepEqual(await pending(), { plain: 0, 'pod-1': 0 })
  for (const id of ['e', 'f', 'g']) await scene.claim(id, ['plain'])
  await scene.plain.bind('h', byRegistry('plain'))
  await scene.claim('i', ['pod-1'])
  assert.deepEqual(await pending(), { plain: 4, 'pod-1': 1 })
  await scene.raw.hset(key, 'load', 6)
  assert.deepEqual(await pending(), { plain: 0, 'pod-1': 1 }, 'a load that was published contains them')
  await scene.claim('j', ['plain'])
  assert.deepEqual(await pending(), { plain: 1, 'pod-1': 1 })
  await scene.raw.expire(key, 300)
  assert.deepEqual(await pending(), { plain: 0, 'pod-1': 1 }, 'and so does a heartbeat')
})

test('claim.lua, bind.lua: a plain record without ttl, whose load has slashes and colons or none, does not gather what was counted', async t => {
  const scene = await setScriptScene(t)
  await scene.raw.hset(scene.key('member', 'plain'), 'address', 'http://x')
  let turn = 0
  for (const load of ['1', 'a:b/c', '-1:/7', '2', '']) {
    await scene.raw.hset(scene.key('member', 'plain'), 'load', load)
    for (const pending of [1, 2]) assert.equal((await scene.claim(`d-${++turn}`, ['plain'])).live[0]?.pending, pending, `'${load}'`)
    await scene.plain.bind(`d-${++turn}`, byRegistry('plain'))
    assert.equal((await scene.record('plain'))['plainPending'], `-1:${load}/3`)
  }
})
