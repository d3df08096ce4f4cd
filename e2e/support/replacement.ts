import assert from 'node:assert/strict'
import { until } from '../../test/support/store.ts'
import type { Reply } from './client.ts'
import type { TestProcess } from './processes.ts'
import type { World } from './world.ts'

/** First touches that a drain goes on for. */
const touchesPerDrain = 8

/** Has a pod that is asked to leave wait for something. @returns lets it go */
export type Hold = (leaver: TestProcess) => Promise<() => Promise<void>>

/**
 * Replaces each pod by another, one after the other, while others touch destinations for the first time, and looks who gets them: nobody
 * who drains, and never two.
 */
export class Replacement {
  isOver = false
  readonly #world: World
  readonly #hold: Hold
  /** memberIds of the pods that have been asked to leave. */
  readonly #leaving = new Set<string>()
  /** When a pod was first seen draining. */
  readonly #drainSeenAt = new Map<string, number>()
  /** What a pod had at the last look at it while it was draining. */
  readonly #owned = new Map<string, Set<string>>()
  readonly #findings: string[] = []
  readonly #exits: number[] = []
  #looks = 0
  /** First touches, those of them sent while a pod was draining, and those that were answered by two pods. */
  #touches = 0
  #touchesInDrains = 0
  #moved = 0

  constructor (world: World, hold: Hold) {
    this.#world = world
    this.#hold = hold
  }

  async run (): Promise<void> {
    try {
      for (const leaver of [...this.#world.pods]) {
        await this.#world.addPod(`${leaver.name}-next`)
        await this.#replace(leaver)
      }
    } finally {
      this.isOver = true
    }
  }

  /** Called when the first requests for a destination, sent at the same moment, have all been answered: by the one pod it has. */
  async check (destinationId: string, replies: readonly Reply[]): Promise<void> {
    const memberIds = new Set<string>()
    const sentAt = Math.min(...replies.map(reply => reply.sentAt))
    for (const reply of replies) {
      const memberId = podOf(reply)
      if (memberId === undefined) continue
      memberIds.add(memberId)
      if (sentAt > (this.#drainSeenAt.get(memberId) ?? Infinity)) this.#findings.push(`${destinationId} was begun by ${memberId}, which drains`)
    }
    const binding = await this.#world.binding(destinationId)
    // None: its pod has left since, and the next request gives it another.
    if (binding.length > 1) this.#findings.push(`${destinationId} has ${binding.map(({ memberId }) => memberId).join(' and ')}`)
    if (memberIds.size > 1) {
      this.#moved++
      if (![...memberIds].some(memberId => this.#leaving.has(memberId))) this.#findings.push(`${destinationId} was answered by ${[...memberIds].join(' and ')}, and none of them leaves`)
    }
    this.#touches++
    if ([...this.#drainSeenAt].some(([memberId, seenAt]) => sentAt > seenAt && this.#world.pod(memberId).state !== 'gone')) this.#touchesInDrains++
  }

  /** @throws when something was found */
  judge (): void {
    assert.deepEqual(this.#findings, [])
    assert.equal(this.#owned.size, this.#exits.length)
  }

  get figures (): Record<string, string | number> {
    return {
      'exits ms': this.#exits.map(Math.round).join(', '),
      'looks at draining pods': this.#looks,
      'first touches': this.#touches,
      'in drains': this.#touchesInDrains,
      'answered by two': this.#moved
    }
  }

  async #replace (leaver: TestProcess): Promise<void> {
    const letGo = await this.#hold(leaver)
    // Before the signal: from here on others may have what it has.
    this.#leaving.add(leaver.name)
    const ending = leaver.terminate()
    ending.catch(() => {}) // its failure is thrown below, unless another comes before
    try {
      await until(async () => await this.#isDraining(leaver), `${leaver.name} drains`)
      this.#drainSeenAt.set(leaver.name, performance.now())
      const goal = this.#touchesInDrains + touchesPerDrain
      await until(async () => {
        this.#world.check()
        await this.#look(leaver)
        return this.#touchesInDrains >= goal
      }, `${touchesPerDrain} destinations have begun while ${leaver.name} drains`, 30_000)
      assert.ok(await this.#isDraining(leaver), `${leaver.name} did not wait`)
    } finally {
      await letGo()
    }
    this.#exits.push((await ending).tookMs)
  }

  async #isDraining ({ name }: TestProcess): Promise<boolean> {
    return (await this.#world.registry.listLiveMembers()).some(({ memberId, draining }) => memberId === name && draining)
  }

  /** What a pod has can only become less once it drains. */
  async #look ({ name }: TestProcess): Promise<void> {
    this.#looks++
    const owned = new Set(await this.#world.registry.listOwned(name))
    const before = this.#owned.get(name) ?? owned
    for (const id of owned) if (!before.has(id)) this.#findings.push(`${id} was bound to ${name}, which drains`)
    this.#owned.set(name, owned)
  }
}

/** The pod that gave an answer; undefined when none did, or it refused. */
export function podOf ({ status, headers, body }: Reply): string | undefined {
  if (status !== 200 && status !== 201) return undefined
  const header = headers['x-storage-pod']
  return typeof header === 'string' ? header : (body as { memberId?: string }).memberId
}
