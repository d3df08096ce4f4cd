// Transactions: what is seen when, and all the ways they end.

import assert from 'node:assert/strict'
import type { Smoke } from './checks.ts'
import { until } from './checks.ts'

export async function tryTransactions (smoke: Smoke): Promise<void> {
  const { api } = smoke
  const tenantId = smoke.name('bank')
  await api.create(tenantId)
  await api.put(tenantId, 'k', 'before')
  const begin = async (body?: unknown): Promise<string> => {
    const reply = await api.begin(tenantId, body)
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.lockId
  }

  await smoke.check('what a transaction writes is seen inside at once, outside after the commit', async () => {
    const lockId = await begin()
    assert.equal((await api.putIn(lockId, 'k', 'after')).status, 204)
    assert.deepEqual([(await api.getIn(lockId, 'k')).body.value, (await api.get(tenantId, 'k')).body.value], ['after', 'before'])
    assert.equal((await api.commit(lockId)).status, 204)
    assert.equal((await api.get(tenantId, 'k')).body.value, 'after')
    assert.deepEqual([(await api.commit(lockId)).status, (await api.getIn(lockId, 'k')).status], [404, 404])
  })

  await smoke.check('a rollback leaves nothing', async () => {
    const lockId = await begin()
    await api.putIn(lockId, 'k', 'never')
    await api.putIn(lockId, 'new', 'never')
    assert.equal((await api.rollBack(lockId)).status, 204)
    assert.deepEqual([(await api.get(tenantId, 'k')).body.value, (await api.get(tenantId, 'new')).status, (await api.rollBack(lockId)).status], ['after', 404, 404])
  })

  await smoke.check('of two serializable transactions that rest on each other one is refused with 409', async () => {
    const [first, second] = [await begin({ isolationLevel: 'serializable' }), await begin({ isolationLevel: 'serializable' })]
    for (const [lockId, read, write] of [[first, 'x', 'y'], [second, 'y', 'x']] as const) {
      assert.equal((await api.getIn(lockId, read)).status, 404)
      await api.putIn(lockId, write, 'v')
    }
    const statuses = [(await api.commit(first)).status, (await api.commit(second)).status]
    assert.deepEqual(statuses, [204, 409])
    assert.equal((await api.commit(second)).status, 404)
  })

  await smoke.check('an unknown lock and an unknown isolation level are refused', async () => {
    const replies = [await api.putIn('no-such-lock', 'k', 'v'), await api.commit('no-such-lock'), await api.begin(tenantId, { isolationLevel: 'chaos' })]
    assert.deepEqual(replies.map(reply => reply.status), [404, 404, 400])
  })

  await smoke.check('a tenant has so many transactions and no more: 429, with Retry-After', async () => {
    const lockIds: string[] = []
    let reply = await api.begin(tenantId)
    for (; reply.status === 201 && lockIds.length < 200; reply = await api.begin(tenantId)) lockIds.push(reply.body.lockId)
    assert.deepEqual([reply.status, Number(reply.headers['retry-after']) > 0], [429, true])
    const ends = await Promise.all(lockIds.map(lockId => api.rollBack(lockId)))
    assert.deepEqual(new Set(ends.map(end => end.status)), new Set([204]))
    await api.rollBack(await begin())
    return `${lockIds.length} of them`
  })

  await smoke.check('one that nobody talks to is rolled back', async () => {
    const { body } = await api.begin(tenantId)
    await api.putIn(body.lockId, 'k', 'forgotten')
    await new Promise(resolve => setTimeout(resolve, body.idleTimeout)) // a request would keep it alive
    await until('the end of an idle transaction', async () => (await api.getIn(body.lockId, 'k')).status === 404, 10_000 + body.idleTimeout * 2)
    assert.equal((await api.get(tenantId, 'k')).body.value, 'after')
    return `after ${body.idleTimeout} ms`
  })

  await smoke.check('a tenant is deleted in spite of an open transaction, which is over then', async () => {
    const doomed = smoke.name('doomed')
    await api.create(doomed)
    const { body } = await api.begin(doomed)
    await api.putIn(body.lockId, 'k', 'v')
    assert.equal((await api.drop(doomed)).status, 204)
    assert.equal((await api.commit(body.lockId)).status, 404)
  })
}
