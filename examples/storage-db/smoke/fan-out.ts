// Fan-out: a tenant that is short of connections gets another pod, and gives it back.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Smoke } from './checks.ts'
import { until } from './checks.ts'

export async function tryFanOut (smoke: Smoke): Promise<void> {
  const { api } = smoke
  const tenantId = smoke.name('hot')
  const findPods = async (): Promise<string[]> => (await api.listPods()).filter(pod => pod.tenants.includes(tenantId)).map(pod => pod.memberId)

  await smoke.check('a saturated tenant gets another pod, and keeps the first alone when it is calm again', async () => {
    await api.create(tenantId)
    const [owner] = await findPods()
    // A transaction holds a row, and everybody else who writes that row waits with a connection in hand, until none is left.
    const { body: { lockId } } = await api.begin(tenantId)
    await api.putIn(lockId, 'row', 'mine')
    const load = { isOver: false }
    const write = async (): Promise<void> => { while (!load.isOver) await api.put(tenantId, 'row', 'theirs') }
    const keepAlive = async (): Promise<void> => {
      for (; !load.isOver; await sleep(100)) await api.getIn(lockId, 'row')
    }
    const clients = Promise.all([keepAlive(), ...Array.from({ length: 30 }, write)])
    let spread: string[]
    try {
      spread = await until('a second pod', async () => {
        const pods = await findPods()
        return pods.length > 1 && pods
      })
      await until('a reply of the second pod', async () => (await api.list(tenantId)).headers['x-storage-pod'] !== owner)
      assert.equal((await api.commit(lockId)).status, 204) // the transaction is where it was
    } finally {
      load.isOver = true
      await clients
    }
    assert.ok(owner !== undefined && spread.includes(owner))
    const left = await until('the end of the fan-out', async () => {
      const pods = await findPods()
      return pods.length === 1 && pods
    }, 60_000)
    assert.deepEqual(left, [owner])
    return spread.join(' and ')
  })
}
