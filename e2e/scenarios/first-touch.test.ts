import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import type { Reply } from '../support/client.ts'
import { kinds, setWorld } from '../support/world.ts'

const racers = 50
// So long that no pod loses its record, however busy the machine is.
const ttl = 20

test('first touch, stateful: of 50 first requests at once through 2 coordinators all reach the one pod that gets the destination', async t => {
  const world = await setWorld(t, { kind: 'stateful', ttl })
  for (const destinationId of ['a-b', 'a_b', 'Tenant/ü 1']) {
    const replies = await Promise.all(Array.from({ length: racers }, async (_, i) => {
      return await world.send('POST', `/${encodeURIComponent(destinationId)}`, `${destinationId}-${i}`, world.urls[i % 2])
    }))
    assert.deepEqual(statuses(replies), { 200: racers })
    const answers = replies.map(({ body }) => body as { memberId: string, incarnation: string, number: number })
    assert.deepEqual(answers.map(({ number }) => number).sort((a, b) => a - b), Array.from({ length: racers }, (_, i) => i + 1))
    assert.equal(new Set(answers.map(({ incarnation }) => incarnation)).size, 1)
    assert.deepEqual(await world.ownersOf(destinationId), [answers[0]?.memberId])
  }
})

test('first touch, storage-db: of 50 creates at once through 2 coordinators one creates, all on the one pod that gets the tenant', async t => {
  const world = await setWorld(t, { kind: 'storage-db', ttl })
  for (const tenantId of ['a-b', 'a_b', 'Tenant/ü 1']) {
    const replies = await Promise.all(Array.from({ length: racers }, async (_, i) => {
      return await world.send('POST', `/tenants/${encodeURIComponent(tenantId)}`, undefined, world.urls[i % 2])
    }))
    assert.deepEqual(statuses(replies), { 200: racers - 1, 201: 1 })
    const memberIds = new Set(replies.map(({ headers }) => headers['x-storage-pod']))
    assert.equal(memberIds.size, 1)
    assert.deepEqual(await world.ownersOf(tenantId), [...memberIds])
  }
  const { body } = await world.send('GET', '/pods')
  const { pods } = body as { pods: { tenants: string[] }[] }
  assert.deepEqual(pods.flatMap(({ tenants }) => tenants).sort(), ['Tenant/ü 1', 'a-b', 'a_b'])
})

for (const kind of kinds) {
  test(`first touch, ${kind}: destinations that begin under load have one pod each, and are spread`, async t => {
    const world = await setWorld(t, { kind, ttl })
    const load = await startLoad(world, { destinations: 24, pace: 60 })
    await load.progress()
    await load.requests(200)
    await world.finish(load, 'first touch')
    assert.deepEqual(load.figures.failures, {})
    const owners = await Promise.all(load.destinationIds.map(async id => (await world.ownerOf(id)).name))
    assert.deepEqual([...new Set(owners)].sort(), ['pod-1', 'pod-2', 'pod-3'])
  })
}

function statuses (replies: Reply[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
