import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from '@platformatic/coordinator'
import { Caller } from './caller.ts'
import { PodProcess } from './pod-process.ts'
import { removeKeys } from './remove-keys.ts'
import type { PodRow, Screen } from './screen.ts'
import { destinationIds, redis, ttl } from './settings.ts'
import { judge } from './summary.ts'
import type { Departure, Summary } from './summary.ts'
import { Tally } from './tally.ts'
import type { Phase } from './tally.ts'

export interface StoryOptions {
  keyPrefix: string
  /** Null: show nothing. */
  screen: Screen | null
  /** Send one request to a pod that does not own its destination: the verdict has to notice. */
  sabotage: boolean
  /** Ends the story early. The story aborts it when a pod crashes. */
  stop: AbortController
}

/** The demo, from the first pod to the verdict. */
export class Story {
  readonly #options: StoryOptions
  readonly #signal: AbortSignal
  readonly #tally = new Tally()
  readonly #pods: PodProcess[] = []
  readonly #callers: Caller[]
  /** Reads the truth, past every cache, for the table and the verdict. */
  readonly #observer: Registry
  #watching: Promise<void> | undefined
  #isOver = false

  constructor (options: StoryOptions) {
    const { keyPrefix } = options
    this.#options = options
    this.#signal = options.stop.signal
    this.#callers = [new Caller(keyPrefix, this.#tally), new Caller(keyPrefix, this.#tally)]
    this.#observer = new Registry({ redis, keyPrefix, memberIndex: true, cache: false })
  }

  async play (): Promise<Summary> {
    const tally = this.#tally
    await this.#observer.listLiveMembers() // no store, no demo

    this.#begin('start', `three pods as processes; keys ${this.#options.keyPrefix}:*`)
    const [, killed, drained] = await Promise.all([this.#startPod('pod-1'), this.#startPod('pod-2'), this.#startPod('pod-3')])

    this.#begin('claim', 'two callers; the first request for a destination claims it')
    this.#watching = this.#watch()
    for (const caller of this.#callers) caller.start()
    await this.#until('every destination is claimed', async () => {
      const owned = await Promise.all(this.#pods.map(pod => this.#observer.listOwned(pod.memberId)))
      return owned.flat().length === destinationIds.length
    })
    this.#detail(`${destinationIds.length} destinations claimed`)

    this.#begin('steady', 'every destination has an owner, the callers go on')
    await this.#pause(1_500)
    if (this.#options.sabotage) await this.#misroute()

    const orphaned = await this.#observer.listOwned(killed.memberId)
    this.#begin('kill', `SIGKILL to ${killed.memberId}, owner of ${orphaned.length}; its record lives up to ${ttl} s`)
    await killed.kill()
    await this.#until(`the destinations of ${killed.memberId} have moved`, async () =>
      tally.failingCount === 0 && (await this.#observer.listOwned(killed.memberId)).length === 0)
    const { reassigned } = tally
    this.#detail(`${reassigned} destinations reassigned, ${tally.failedByPhase.kill} requests failed in the gap`)

    const handedOver = await this.#observer.listOwned(drained.memberId)
    this.#begin('drain', `SIGTERM to ${drained.memberId}, owner of ${handedOver.length}; it moves them and leaves`)
    await drained.leave()
    this.#detail(`${drained.memberId} has left, ${tally.failedByPhase.drain} requests failed`)

    this.#begin('after', 'the last pod owns every destination')
    await this.#pause(1_000)
    await Promise.all(this.#callers.map(caller => caller.stop()))
    this.#isOver = true
    await this.#watching

    return this.#sumUp(
      { memberId: killed.memberId, destinations: orphaned.length, reassigned },
      { memberId: drained.memberId, destinations: handedOver.length, reassigned: tally.reassigned - reassigned }
    )
  }

  /** Leaves nothing behind: no process, no connection, no key. */
  async cleanUp (): Promise<void> {
    this.#isOver = true
    await Promise.all([...this.#callers.map(caller => caller.stop()), ...this.#pods.map(pod => pod.kill()), this.#watching])
    await Promise.all([this.#observer, ...this.#callers.map(caller => caller.registry)].map(registry => registry.close()))
    await removeKeys(this.#options.keyPrefix)
  }

  #begin (phase: Phase, text: string): void {
    this.#tally.phase = phase
    this.#options.screen?.logPhase(phase, text)
  }

  #detail (text: string): void {
    this.#options.screen?.log(`                 ${text}`)
  }

  async #pause (milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#signal })
  }

  async #until (claim: string, isTrue: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 15_000
    while (!await isTrue()) {
      if (performance.now() > deadline) throw new Error(`Expected that within 15 s ${claim}`)
      await this.#pause(50)
    }
  }

  async #startPod (memberId: string): Promise<PodProcess> {
    const pod = new PodProcess(memberId, this.#options.keyPrefix, error => this.#options.stop.abort(error))
    this.#pods.push(pod)
    await pod.ready(this.#signal)
    this.#detail(`${memberId} at ${pod.address}, pid ${pod.pid}`)
    return pod
  }

  async #misroute (): Promise<void> {
    const [stranger, owner] = this.#pods as [PodProcess, PodProcess]
    const [destinationId] = await this.#observer.listOwned(owner.memberId)
    await this.#callers[0]!.send(stranger.address, destinationId!)
  }

  async #watch (): Promise<void> {
    try {
      for (let isLast = false; !isLast; await sleep(100)) {
        isLast = this.#isOver || this.#signal.aborted
        const pods = await this.#readRows()
        const { sent, failed } = this.#tally
        this.#options.screen?.draw({ pods, sent, failed, destinations: destinationIds.length })
      }
    } catch (error) {
      this.#options.stop.abort(error)
    }
  }

  async #readRows (): Promise<PodRow[]> {
    const live = new Map((await this.#observer.listLiveMembers()).map(member => [member.memberId, member]))
    return Promise.all(this.#pods.map(async ({ memberId, state }) => {
      const member = live.get(memberId)
      return {
        memberId,
        state,
        record: member ? (member.draining ? 'draining' : 'live') : 'none',
        load: member?.load ?? null,
        destinations: (await this.#observer.listOwned(memberId)).length,
        requests: this.#tally.answeredBy.get(memberId) ?? 0
      }
    }))
  }

  async #sumUp (killed: Departure, drained: Departure): Promise<Summary> {
    const { sent, answered, failed, failingCount, failedByPhase, failedByReason, answeredBy } = this.#tally
    // Not the index but the bindings themselves, and only live pods: a destination whose pods are all dead has no owner.
    const bindings = await Promise.all(destinationIds.map(destinationId => this.#observer.readBinding(destinationId)))
    const owners = bindings.map(binding => binding.filter(pod => pod.isLive).map(pod => pod.memberId))
    const counts = {
      destinations: destinationIds.length,
      ownerless: owners.filter(memberIds => memberIds.length === 0).length,
      failing: failingCount,
      sent,
      answered,
      failed,
      misrouted: failedByReason.misrouted
    }
    return {
      ...judge(counts),
      keyPrefix: this.#options.keyPrefix,
      durationMs: Math.round(performance.now()),
      ...counts,
      failedByPhase,
      failedByReason,
      longestGapMs: Math.round(this.#tally.getLongestGap()),
      killed,
      drained,
      pods: this.#pods.map(({ memberId, pid, state }) => ({
        memberId,
        pid,
        state,
        destinations: owners.filter(memberIds => memberIds.includes(memberId)).length,
        requests: answeredBy.get(memberId) ?? 0
      }))
    }
  }
}
