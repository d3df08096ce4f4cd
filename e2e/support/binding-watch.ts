import { setTimeout as sleep } from 'node:timers/promises'
import type { World } from './world.ts'

/** Which pods a destination was bound to from one moment on. */
export interface BindingState {
  /** Live ones, sorted. */
  live: string[]
  /** Bound, and without a record. */
  dead: string[]
  seenAt: number
}

/** Reads bindings past every cache, one round after the other, until it is stopped: what it shows is what any coordinator may have read. */
export class BindingWatch {
  readonly #world: World
  readonly #destinationIds: readonly string[]
  readonly #history = new Map<string, BindingState[]>()
  readonly #run: Promise<void>
  #isStopped = false
  #error: unknown
  rounds = 0

  constructor (world: World, destinationIds: readonly string[]) {
    this.#world = world
    this.#destinationIds = destinationIds
    this.#run = this.#watch().catch(error => { this.#error = error })
    world.onClose(() => this.stop().catch(() => {}))
  }

  /** The states of a destination, each time it changed. */
  history (destinationId: string): readonly BindingState[] {
    return this.#history.get(destinationId) ?? []
  }

  /** The same in short: `pod-1`, `pod-1+pod-2`, with `nobody` for none; dead ones as `(pod-1)`. */
  succession (destinationId: string): string[] {
    return this.history(destinationId).map(({ live, dead }) => [...live, ...dead.map(memberId => `(${memberId})`)].join('+') || 'nobody')
  }

  /** @throws what kept it from reading */
  async stop (): Promise<void> {
    this.#isStopped = true
    await this.#run
    if (this.#error !== undefined) throw this.#error
  }

  async #watch (): Promise<void> {
    while (!this.#isStopped) {
      await Promise.all(this.#destinationIds.map(destinationId => this.#look(destinationId)))
      this.rounds++
      await sleep(5)
    }
  }

  async #look (destinationId: string): Promise<void> {
    const binding = await this.#world.binding(destinationId)
    const named = (isLive: boolean): string[] => binding.filter(pod => pod.isLive === isLive).map(({ memberId }) => memberId).sort()
    const state = { live: named(true), dead: named(false), seenAt: performance.now() }
    const states = this.#history.get(destinationId) ?? []
    this.#history.set(destinationId, states)
    const last = states.at(-1)
    if (last === undefined || last.live.join() !== state.live.join() || last.dead.join() !== state.dead.join()) states.push(state)
  }
}
