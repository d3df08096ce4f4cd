import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { Registry } from '@platformatic/coordinator'
import { Client } from './client.ts'
import { createCoordinator } from './coordinator.ts'
import type { CoordinatorOptions } from './coordinator.ts'
import { PodProcess } from './pod-process.ts'
import { removeKeys } from './remove-keys.ts'
import { misroute } from './sabotage.ts'
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
  readonly #coordinators: FastifyInstance[] = []
  readonly #clients: Client[] = []
  readonly #coordinatorOptions: CoordinatorOptions
  /** Reads the truth, past every cache, for the table and the verdict. */
  readonly #observer: Registry
  #watching: Promise<void> | undefined
  #isOver = false

  constructor (options: StoryOptions) {
    const { keyPrefix } = options
    this.#options = options
    this.#signal = options.stop.signal
    this.#coordinatorOptions = { keyPrefix, onResult: result => this.#tally.tell(result) }
    this.#observer = new Registry({ redis, keyPrefix, memberIndex: true, cache: false })
  }

  async play (): Promise<Summary> {
    const tally = this.#tally
    await this.#observer.listLiveMembers() // no store, no demo

    this.#begin('start', `three pods, two coordinators; keys ${this.#options.keyPrefix}:*`)
    const [, killed, drained] = await Promise.all([this.#startPod('pod-1'), this.#startPod('pod-2'), this.#startPod('pod-3')])

    await this.#startCoordinator('coordinator-1')
    await this.#startCoordinator('coordinator-2')

    this.#begin('claim', 'HTTP requests to both; the first for a destination claims it')
    this.#watching = this.#watch()
    for (const client of this.#clients) client.start()
    await this.#until('every destination is claimed', async () => {
      const owned = await Promise.all(this.#pods.map(pod => this.#observer.listOwned(pod.memberId)))
      return owned.flat().length === destinationIds.length
    })
    this.#detail(`${destinationIds.length} destinations claimed`)

    this.#begin('steady', 'every destination has an owner, the requests go on')
    await this.#pause(1_500)
    if (this.#options.sabotage) await this.#misroute()

    const orphaned = await this.#observer.listOwned(killed.memberId)
    this.#begin('kill', `SIGKILL to ${killed.memberId}, owner of ${orphaned.length}; its record lives up to ${ttl} s`)
    await killed.kill()
    await this.#until(`the destinations of ${killed.memberId} have moved`, async () =>
      tally.failingCount === 0 && (await this.#observer.listOwned(killed.memberId)).length === 0)
    await this.#settle()
    const { reassigned } = tally
    this.#detail(`${reassigned} destinations reassigned, ${tally.failedByPhase.kill} requests failed in the gap`)

    const handedOver = await this.#observer.listOwned(drained.memberId)
    this.#begin('drain', `SIGTERM to ${drained.memberId}, owner of ${handedOver.length}; it moves them and leaves`)
    await drained.leave()
    this.#detail(`${drained.memberId} has left, ${tally.failedByPhase.drain} requests failed`)

    this.#begin('after', 'the last pod owns every destination')
    await this.#pause(1_000)
    await Promise.all(this.#clients.map(client => client.stop()))
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
    await Promise.all([...this.#clients.map(client => client.stop()), ...this.#pods.map(pod => pod.kill()), this.#watching])
    await Promise.all([this.#observer, ...this.#coordinators].map(one => one.close()))
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

  async #startCoordinator (name: string): Promise<void> {
    const app = await createCoordinator(this.#coordinatorOptions)
    this.#coordinators.push(app)
    const address = await app.listen({ host: '127.0.0.1', port: 0 })
    this.#clients.push(new Client(address, this.#tally))
    this.#detail(`${name} at ${address}`)
  }

  /** Waits until the requests that are on their way have been counted. */
  async #settle (): Promise<void> {
    await Promise.all(this.#clients.map(client => client.settle()))
  }

  async #misroute (): Promise<void> {
    const [stranger, owner] = this.#pods as [PodProcess, PodProcess]
    const [destinationId] = await this.#observer.listOwned(owner.memberId)
    await misroute(stranger, destinationId!, this.#tally, this.#coordinatorOptions)
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
    const { sent, answered, failed, misrouted, failingCount, failedByPhase, statuses, results, answeredBy } = this.#tally
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
      misrouted
    }
    return {
      ...judge(counts),
      keyPrefix: this.#options.keyPrefix,
      durationMs: Math.round(performance.now()),
      ...counts,
      failedByPhase,
      statuses,
      results,
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
