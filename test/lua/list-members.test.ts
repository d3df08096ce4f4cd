import assert from 'node:assert/strict'
import test from 'node:test'
import { manyIds, setScriptScene, trickyIds } from '../support/script-scene.ts'
import type { ScriptScene } from '../support/script-scene.ts'

async function addMembers (scene: ScriptScene, memberIds: string[]): Promise<void> {
  const batch = scene.raw.pipeline()
  for (const memberId of memberIds) batch.hset(scene.key('member', memberId), 'address', `http://${memberId}`, 'load', 1).sadd(scene.key('members'), memberId)
  await batch.exec()
}

test('list-members.lua: no members is an empty page', async t => {
  const scene = await setScriptScene(t)
  assert.deepEqual(await scene.run('list-members', [scene.names.members, scene.names.memberBase], []), ['page', 0])
  assert.deepEqual(await scene.keys(), [])
})

test('list-members.lua: a page holds each live member as its record says, then the ids without one', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('pod-1', { load: '0.5', draining: '1' })
  const keys = [scene.names.members, scene.names.memberBase]
  assert.deepEqual(await scene.run('list-members', keys, []), ['page', 1, 'pod-1', 'http://pod-1.test:3000', '0.5', '', '1'])

  await scene.register('pod-2', 'two', { load: 2 })
  await scene.claim('d', ['pod-2'])
  await scene.rawMember('no-address', { address: '' })
  await scene.raw.sadd(scene.key('members'), 'gone')
  const page = await scene.plain.listMembers()

  assert.ok(page.status === 'page')
  assert.deepEqual(page.dead.sort(), ['gone', 'no-address'])
  assert.deepEqual(page.live.sort((a, b) => a.memberId < b.memberId ? -1 : 1), [
    { memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 0.5, pending: 0, draining: true },
    { memberId: 'pod-2', address: 'http://pod-2.test:3000', load: 2, pending: 1, draining: false }
  ])
})

test('list-members.lua: draining written as no text, 0 or false is none', async t => {
  const scene = await setScriptScene(t)
  for (const [memberId, draining] of Object.entries({ a: '', b: '0', c: 'false', d: 'true' })) await scene.rawMember(memberId, { draining })

  const page = await scene.plain.listMembers()

  assert.ok(page.status === 'page')
  assert.deepEqual(page.live.filter(member => member.draining).map(({ memberId }) => memberId), ['d'])
})

test('list-members.lua: asked for ids it answers for them alone, in or out of the set, in their order', async t => {
  const scene = await setScriptScene(t)
  await addMembers(scene, ['a', 'b'])
  await scene.raw.hset(scene.key('member', 'out'), 'address', 'http://out')

  const page = await scene.plain.listMembers(['out', 'gone', 'b'])

  assert.ok(page.status === 'page')
  assert.deepEqual([page.live.map(({ memberId }) => memberId), page.dead], [['out', 'b'], ['gone']])
})

test('list-members.lua: 100 members are a page, 101 to 1000 are named, more are told to be many', async t => {
  const scene = await setScriptScene(t)
  const ids = manyIds(1001, 'pod')
  await addMembers(scene, ids.slice(0, 100))
  const page = await scene.plain.listMembers()
  assert.ok(page.status === 'page')
  assert.equal(new Set(page.live.map(({ memberId }) => memberId)).size, 100)

  await addMembers(scene, ids.slice(100, 101))
  const named = await scene.plain.listMembers()
  assert.ok(named.status === 'ids')
  assert.deepEqual(named.memberIds.sort(), ids.slice(0, 101).sort())

  await addMembers(scene, ids.slice(101, 1000))
  const thousand = await scene.plain.listMembers()
  assert.ok(thousand.status === 'ids')
  assert.equal(thousand.memberIds.length, 1000)

  await addMembers(scene, ids.slice(1000))
  assert.deepEqual(await scene.plain.listMembers(), { status: 'many' })
  assert.equal((await scene.plain.readMemberIds()).length, 1001)
})

test('list-members.lua: a plain record counts what was bound since its last EXPIRE, a Member what its beat left', async t => {
  const scene = await setScriptScene(t)
  await scene.rawMember('plain')
  await scene.register('pod-1', 'one')
  await scene.claim('d-1', ['plain'])
  await scene.claim('d-2', ['plain'])
  await scene.claim('d-3', ['pod-1'])
  // Left over on a record that a Member adopted: its own field decides.
  await scene.raw.hset(scene.key('member', 'pod-1'), 'plainPending', '-1/99')

  const pending = async (): Promise<Record<string, number>> => {
    const page = await scene.plain.listMembers()
    assert.ok(page.status === 'page')
    return Object.fromEntries(page.live.map(member => [member.memberId, member.pending]))
  }
  assert.deepEqual(await pending(), { plain: 2, 'pod-1': 1 })
  await scene.raw.expire(scene.key('member', 'plain'), 300)
  assert.deepEqual(await pending(), { plain: 0, 'pod-1': 1 })
  await scene.raw.hset(scene.key('member', 'plain'), 'plainPending', 'x')
  assert.deepEqual(await pending(), { plain: 0, 'pod-1': 1 })
})

test('list-members.lua: ids that look alike, or like its statuses, are kept apart', async t => {
  const scene = await setScriptScene(t)
  const ids = [...trickyIds, 'ids', 'page', 'many']
  for (const id of ids) await scene.raw.hset(scene.key('member', id), 'address', `http://${ids.indexOf(id)}`)
  await scene.raw.sadd(scene.key('members'), ...ids, 'dead\nids')

  const page = await scene.plain.listMembers()

  assert.ok(page.status === 'page')
  assert.deepEqual(Object.fromEntries(page.live.map(({ memberId, address }) => [`.${memberId}`, address])), Object.fromEntries(ids.map((id, at) => [`.${id}`, `http://${at}`])))
  assert.deepEqual(page.dead, ['dead\nids'])
})
