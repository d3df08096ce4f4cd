// What becomes of tenants when their pod stops, or is killed, under load: nothing that was acknowledged is lost.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from './api.ts'
import type { Smoke } from './checks.ts'
import { until } from './checks.ts'

export async function tryPodsThatEnd (smoke: Smoke): Promise<void> {
  const claims = ['SIGTERM of a pod under load: no request fails, no acknowledged write is lost', 'a pod that stops rolls its open transactions back', 'SIGKILL of a pod under load: its tenants move, no acknowledged write is lost']
  const { api, stack } = smoke
  if (stack === null) {
    for (const claim of claims) smoke.skip(claim, 'needs the processes')
    return
  }
  const [stopping = '', rollingBack = '', killing = ''] = claims

  await smoke.check(stopping, async () => {
    const load = await Load.start(smoke, 'term')
    await sleep(500)
    const memberId = await load.findOwner()
    assert.equal(await stack.endPod(memberId, 'SIGTERM'), 0)
    await sleep(500)
    await load.compare()
    await stack.startPod(memberId)
    assert.deepEqual(load.failures, {})
    return load.summary
  })

  await smoke.check(rollingBack, async () => {
    const tenantId = smoke.name('left-open')
    const created = await api.create(tenantId)
    const memberId = String(created.headers['x-storage-pod'])
    const { body: { lockId } } = await api.begin(tenantId)
    await api.putIn(lockId, 'k', 'v')
    const ended = stack.endPod(memberId, 'SIGTERM')
    await until('draining', async () => (await api.listPods()).some(pod => pod.memberId === memberId && pod.draining))
    const refused = await api.begin(tenantId)
    assert.deepEqual([refused.status, Number(refused.headers['retry-after']) > 0], [503, true])
    assert.equal((await api.getIn(lockId, 'k')).status, 200) // it may still finish
    assert.equal(await ended, 0)
    assert.equal((await api.commit(lockId)).status, 404)
    const after = await api.get(tenantId, 'k')
    assert.deepEqual([after.status, after.headers['x-storage-pod'] === memberId], [404, false])
    await stack.startPod(memberId)
  })

  await smoke.check(killing, async () => {
    const load = await Load.start(smoke, 'kill')
    await sleep(500)
    const memberId = await load.findOwner()
    assert.equal(await stack.endPod(memberId, 'SIGKILL'), 'SIGKILL')
    await until('other pods for all of its tenants', async () => {
      const pods = await api.listPods()
      return load.tenantIds.every(id => pods.some(pod => pod.memberId !== memberId && pod.tenants.includes(id)))
    })
    await sleep(500)
    await load.compare()
    await stack.startPod(memberId)
    return load.summary
  })
}

/** Writes growing numbers under many keys and remembers what was acknowledged. */
class Load {
  readonly #api: Api
  readonly tenantIds: string[]
  readonly #acknowledged = new Map<string, { tenantId: string, key: string, value: number }>()
  readonly #uncertain = new Set<string>()
  readonly failures: Record<string, number> = {}
  #writeCount = 0
  #isOver = false
  #lanes: Array<Promise<void>> = []

  static async start (smoke: Smoke, name: string): Promise<Load> {
    const load = new Load(smoke, name)
    for (const tenantId of load.tenantIds) assert.equal((await smoke.api.create(tenantId)).status, 201)
    load.#lanes = Array.from({ length: 8 }, (_, i) => load.#run(load.tenantIds[i % load.tenantIds.length] ?? '', `key-${i}`))
    return load
  }

  private constructor (smoke: Smoke, name: string) {
    this.#api = smoke.api
    this.tenantIds = Array.from({ length: 6 }, (_, i) => smoke.name(`${name}-${i}`))
  }

  get summary (): string {
    const failed = Object.entries(this.failures).map(([status, count]) => `${count} × ${status}`).join(', ')
    return `${this.#writeCount} writes, failed: ${failed || 'none'}`
  }

  /** A pod that has some of the tenants. */
  async findOwner (): Promise<string> {
    const pod = (await this.#api.listPods()).find(pod => pod.tenants.some(id => this.tenantIds.includes(id)))
    if (pod === undefined) throw new Error('No pod has any of the tenants')
    return pod.memberId
  }

  /** Ends the load, reads every key back and compares. */
  async compare (): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#lanes)
    assert.ok(this.#acknowledged.size > 0)
    for (const [name, { tenantId, key, value }] of this.#acknowledged) {
      if (this.#uncertain.has(name)) continue
      const { status, body } = await this.#api.get(tenantId, key)
      assert.deepEqual([name, status, body.value], [name, 200, String(value)])
    }
  }

  async #run (tenantId: string, key: string): Promise<void> {
    const name = `${tenantId} ${key}`
    for (let value = 1; !this.#isOver; value++) {
      this.#writeCount++
      const status = await this.#api.put(tenantId, key, String(value)).then(reply => String(reply.status), error => error.code ?? 'no reply')
      if (status === '204') {
        this.#acknowledged.set(name, { tenantId, key, value })
        this.#uncertain.delete(name)
      } else {
        this.#uncertain.add(name)
        this.failures[status] = (this.failures[status] ?? 0) + 1
        await sleep(50)
      }
    }
  }
}
