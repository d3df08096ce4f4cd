import assert from 'node:assert/strict'
import test from 'node:test'
import { startLoad } from '../support/start-load.ts'
import type { Reply } from '../support/client.ts'
import { setWorld } from '../support/world.ts'

const racers = 50

test('first touch, stateful: of 50 first requests at once through 2 coordinators all reach the one pod that gets the destination', async t => {
  const world = await setWorld(t, { kind: 'stateful' })
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

test('first touch, stateful: destinations that begin under load have one pod each, and are spread', async t => {
  const world = await setWorld(t, { kind: 'stateful' })
  const load = await startLoad(world, { destinations: 24, pace: 60 })
  await load.progress()
  await load.requests(200)
  await world.finish(load, 'first-touch')
  const owners = await Promise.all(load.destinationIds.map(async id => (await world.ownerOf(id)).name))
  assert.deepEqual([...new Set(owners)].sort(), ['pod-1', 'pod-2', 'pod-3'])
})

function statuses (replies: Reply[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
