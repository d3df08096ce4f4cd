// This pod's side of the coordinator library: its record with heartbeats, and the bindings that it changes by itself.

import type { FastifyBaseLogger } from 'fastify'
import { isCoordinatorError, Member, Registry } from '@platformatic/coordinator'
import type { CoordinatorError } from '@platformatic/coordinator'
import type { PodSettings } from './settings.ts'

export interface PodMembershipOptions {
  readonly settings: PodSettings
  readonly getLoad: () => number
  /** What else there is to do now and then, after a heartbeat, until the pod drains. */
  readonly onHeartbeat: () => unknown
  /** Another process registered this memberId: nothing is sent here any more. */
  readonly onSuperseded: () => void
  readonly log: FastifyBaseLogger
}

export class PodMembership {
  /** For what concerns other pods. Nothing is cached: it is asked rarely, and then the truth is wanted. */
  readonly registry: Registry
  readonly #options: PodMembershipOptions
  #member: Member | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #isDraining = false
  #isSuperseded = false

  constructor (options: PodMembershipOptions) {
    this.#options = options
    this.registry = new Registry({ ...this.#storeOptions(), cache: false })
  }

  get memberId (): string {
    return this.#options.settings.memberId
  }

  /** True from the moment the pod is asked to stop. */
  get isDraining (): boolean {
    return this.#isDraining
  }

  /** True when another process has this memberId: what is locked here is found by nobody any more. */
  get isSuperseded (): boolean {
    return this.#isSuperseded
  }

  /** Makes the pod live: from here on it gets tenants. */
  async join (address: string): Promise<void> {
    const { settings, getLoad, onHeartbeat } = this.#options
    this.#member = new Member({
      ...this.#storeOptions(),
      memberId: settings.memberId,
      address,
      ttl: settings.ttl,
      getLoad,
      loadPerBinding: 1 // a tenant opens one connection with its first request
    })
    await this.#member.register()
    this.#heartbeat = setInterval(async () => {
      await this.#member?.heartbeat() // never rejects
      if (!this.#isDraining) onHeartbeat()
    }, settings.heartbeat)
  }

  /** The member, once joined. */
  get member (): Member {
    if (this.#member === undefined) throw new Error('The pod has not joined yet')
    return this.#member
  }

  /**
   * Binds a tenant that was just created to this pod if it is bound to nobody: the request may have come by a binding that a coordinator
   * remembered and that this pod has given back since.
   */
  async bindIfFree (tenantId: string): Promise<void> {
    await this.#tolerate('bind', tenantId, () => this.registry.bindPod(tenantId, this.memberId, { ifBound: 'refuse' }))
  }

  /** The tenants that are bound to this pod. */
  async listOwned (): Promise<string[]> {
    return await this.member.listOwned()
  }

  /** Takes this pod from a tenant. */
  async giveBack (tenantId: string): Promise<void> {
    await this.#tolerate('give back', tenantId, () => this.member.removeFromDestination(tenantId))
  }

  /** Forgets all pods of a tenant that was deleted. */
  async forget (tenantId: string): Promise<void> {
    await this.#tolerate('forget', tenantId, () => this.registry.deregisterDestination(tenantId))
  }

  /** Makes a transaction known to the coordinators. @throws an error of the library */
  async registerLock (lockId: string, tenantId: string, metadata: object): Promise<void> {
    await this.member.registerLock(lockId, tenantId, metadata)
  }

  async unregisterLock (lockId: string): Promise<void> {
    await this.member.unregisterLock(lockId)
  }

  /** Takes nothing new from here on. */
  async drain (): Promise<void> {
    this.#isDraining = true
    await this.#tolerate('drain', '', async () => await this.#member?.setDraining(true))
  }

  /** Takes the record away, and the locks with it: the next request for each tenant goes to another pod. */
  async leave (): Promise<void> {
    clearInterval(this.#heartbeat)
    await this.#tolerate('leave', '', async () => await this.#member?.deregister())
  }

  async close (): Promise<void> {
    clearInterval(this.#heartbeat)
    await Promise.all([this.#member?.close(), this.registry.close()])
  }

  /**
   * The data are PostgreSQL's, so what Valkey missed costs at most a binding too much or too little, which the next request for the tenant
   * puts right: no reason to fail a request that PostgreSQL has answered.
   */
  async #tolerate (task: string, tenantId: string, change: () => Promise<unknown>): Promise<void> {
    try {
      await change()
    } catch (error) {
      this.#options.log.warn({ err: error, tenantId }, `could not ${task}`)
    }
  }

  #storeOptions () {
    const { settings, log, onSuperseded } = this.#options
    return {
      redis: settings.redisUrl,
      keyPrefix: settings.keyPrefix,
      memberIndex: true,
      onError: (error: CoordinatorError) => {
        log.warn({ err: error }, 'coordinator')
        if (!isCoordinatorError(error, 'PLT_COORDINATOR_SUPERSEDED')) return
        this.#isSuperseded = true
        onSuperseded()
      }
    }
  }
}
