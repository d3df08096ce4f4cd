import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from '@platformatic/coordinator'
import { cacheTtl, destinationIds, redis } from './settings.ts'
import type { Tally } from './tally.ts'

/** A caller: asks its own registry which pod owns a destination and sends the request there, for one destination after the other. */
export class Caller {
  readonly registry: Registry
  readonly #tally: Tally
  #turn = 0
  #isStopped = false
  #lanes: Array<Promise<void>> = []

  constructor (keyPrefix: string, tally: Tally) {
    this.registry = new Registry({ redis, keyPrefix, memberIndex: true, strategy: 'least-loaded', cache: { ttl: cacheTtl } })
    this.#tally = tally
  }

  start (): void {
    this.#lanes = Array.from({ length: 4 }, async () => {
      while (!this.#isStopped) {
        await this.request(destinationIds[this.#turn++ % destinationIds.length]!)
        await sleep(5)
      }
    })
  }

  /** Sends nothing new and waits for the requests that are on their way. */
  async stop (): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#lanes)
  }

  async request (destinationId: string): Promise<void> {
    const startedAt = performance.now()
    try {
      // The first request for a destination claims it for a pod; when its pods are dead, it goes to one that lives.
      const pod = await this.registry.resolveDestination(destinationId, { claimOnMiss: true, reassignOrphans: true })
      if (pod === null) return this.#tally.fail('unresolved', destinationId, startedAt)
      if (pod.reassigned) this.#tally.reassigned++
      await this.send(pod.address, destinationId, startedAt)
    } catch {
      this.#tally.fail('unresolved', destinationId, startedAt)
    }
  }

  async send (address: string, destinationId: string, startedAt = performance.now()): Promise<void> {
    try {
      const response = await fetch(`${address}/${destinationId}`, { signal: AbortSignal.timeout(2_000) })
      const body = await response.text()
      if (response.status === 200) return this.#tally.answer(JSON.parse(body).memberId, destinationId, startedAt)
      this.#tally.fail(response.status === 421 ? 'misrouted' : 'refused', destinationId, startedAt)
    } catch {
      // Refused, cut or timed out: the pod may be dead, so the next request asks the store instead of the cache.
      this.registry.invalidateCache(destinationId)
      this.#tally.fail('unreachable', destinationId, startedAt)
    }
  }
}
