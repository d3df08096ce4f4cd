import { setTimeout as sleep } from 'node:timers/promises'
import { destinationIds, podTimeout } from './settings.ts'
import type { Tally } from './tally.ts'

/** A client: sends one request after the other, for one destination after the other, to its coordinator. It knows of no pods. */
export class Client {
  readonly #coordinator: string
  readonly #tally: Tally
  readonly #underWay = new Set<Promise<void>>()
  #turn = 0
  #isStopped = false
  #lanes: Array<Promise<void>> = []

  /** @param coordinator base URL */
  constructor (coordinator: string, tally: Tally) {
    this.#coordinator = coordinator
    this.#tally = tally
  }

  start (): void {
    this.#lanes = Array.from({ length: 4 }, async () => {
      while (!this.#isStopped) {
        const request = this.request(destinationIds[this.#turn++ % destinationIds.length]!)
        this.#underWay.add(request)
        await request
        this.#underWay.delete(request)
        await sleep(5)
      }
    })
  }

  /** Waits for the requests that are on their way now. */
  async settle (): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Sends nothing new and waits for the requests that are on their way. */
  async stop (): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#lanes)
  }

  async request (destinationId: string): Promise<void> {
    const startedAt = performance.now()
    try {
      // The coordinator gives up earlier, with 504.
      const response = await fetch(`${this.#coordinator}/${destinationId}`, { signal: AbortSignal.timeout(3 * podTimeout) })
      const body = await response.text()
      if (response.status !== 200) return this.#tally.fail(response.status, destinationId, startedAt)
      this.#tally.answer(JSON.parse(body).memberId, destinationId, startedAt)
    } catch {
      this.#tally.fail('none', destinationId, startedAt)
    }
  }
}
