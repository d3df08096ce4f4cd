// Fan-out and fan-in: a tenant that needs more connections than one pool has gets another pod, and loses it when it has been calm for a while.
//
// A pod notices that its own share of a tenant is saturated, and binds the idlest of the others to it. That pod is told nothing: it serves any
// tenant that it is asked for. What it must know is that it is an extra one, which may go, and that two pods must never both go and think
// that the other one stays. So
// - a row in PostgreSQL names the keeper, the pod that had the tenant alone. It never goes. Where it is dead or draining the first by name of the
//   live ones is the keeper;
// - every decision about the pods of a tenant, to add one or to go, is made under an advisory lock that all pods share, on a fresh reading of
//   binding and row. They are made one after another, so nobody decides on what another one is changing;
// - pods go one at a time: each starts the wait of the others anew.
// Should a crash leave binding and row apart (a pod was bound and the row is missing, or the reverse) nothing is lost: the row of a tenant that has
// one pod is removed by that pod, and a pod that was bound by hand is nobody's extra one and stays.

import type pg from 'pg'
import type { FastifyBaseLogger } from 'fastify'
import { withConnection } from './database.ts'
import type { FanOutRecords } from './fan-out-records.ts'
import { decideFanIn, findKeeper, rankPeers } from './fan-out-rule.ts'
import type { FanOutRecord } from './fan-out-rule.ts'
import type { PodMembership } from './pod-membership.ts'
import type { PoolManager } from './pool-manager.ts'
import type { PodSettings } from './settings.ts'
import type { Look } from './tenant-pool.ts'
import type { Tenants } from './tenants.ts'

/** Milliseconds between two attempts to add a pod to one tenant. */
const attemptInterval = 500
/** Milliseconds beyond CACHE_TTL after which a pod that was added is expected to help. */
const helpMargin = 1000
/** An extra pod whose connections were in use for more than half of the time would be missed: two pods at half are one at the limit. */
const maxCalmUse = 0.5

export interface FanOutOptions {
  readonly settings: Pick<PodSettings, 'cacheTtl' | 'fanInCalm' | 'maxPodsPerTenant'>
  readonly catalogue: pg.Pool
  readonly records: FanOutRecords
  readonly tenants: Tenants
  readonly pools: PoolManager
  readonly membership: PodMembership
  readonly log: FastifyBaseLogger
}

export class FanOut {
  readonly #options: FanOutOptions
  /** Tenants for which a pod was to be added a moment ago. */
  readonly #attempted = new Set<string>()
  /** Since when, by our clock, this pod's share of a tenant has been calm. */
  readonly #calmSince = new Map<string, number>()
  #isLooking = false

  constructor (options: FanOutOptions) {
    this.#options = options
  }

  /** Called while the tenant's connections here are all in use and requests have been waiting for one. Never rejects. */
  async onSaturated (tenantId: string): Promise<void> {
    if (this.#attempted.has(tenantId) || this.#options.membership.isDraining) return
    this.#attempted.add(tenantId)
    setTimeout(() => this.#attempted.delete(tenantId), attemptInterval).unref()
    await this.#tolerate(tenantId, async () => {
      await withConnection(this.#options.catalogue, client => this.#options.records.markSaturated(client, tenantId))
      await this.#options.tenants.tryAlone(tenantId, client => this.#addPod(client, tenantId))
    })
  }

  /** Leaves the tenants that have been calm, where this pod is an extra one. Called beside each heartbeat; never rejects. */
  async lookAtAll (): Promise<void> {
    if (this.#isLooking || this.#options.membership.isDraining) return
    this.#isLooking = true
    await this.#tolerate('', async () => {
      const records = await withConnection(this.#options.catalogue, client => this.#options.records.list(client))
      const isOwned = records.length === 0 ? new Set() : new Set(await this.#options.membership.member.listOwned())
      const shared = records.filter(record => isOwned.has(record.tenantId))
      const isShared = new Set(shared.map(record => record.tenantId))
      for (const tenantId of this.#calmSince.keys()) {
        if (!isShared.has(tenantId)) this.#calmSince.delete(tenantId)
      }
      for (const record of shared) await this.#tolerate(record.tenantId, () => this.#lookAt(record))
    })
    this.#isLooking = false
  }

  async #addPod (client: pg.PoolClient, tenantId: string): Promise<void> {
    const { settings, records, membership: { registry, memberId, member }, log } = this.#options
    const [record, binding, peers] = [await records.read(client, tenantId), await registry.readBinding(tenantId), await member.listPeerLoad()]
    const limits = { maxPodsPerTenant: settings.maxPodsPerTenant, helpTime: settings.cacheTtl + helpMargin }
    for (const peer of rankPeers(memberId, binding, record, peers, limits)) {
      // The row first: a pod that was bound without one would never go. The tenant may have been deleted meanwhile.
      if (!await records.add(client, tenantId, findKeeper(record?.keeper, binding) ?? memberId)) return
      // False when that pod began to drain, or died, meanwhile.
      if (await registry.addPodToDestination(tenantId, peer.memberId)) {
        log.info({ tenantId, extra: peer.memberId }, 'fanned out')
        return
      }
    }
  }

  async #lookAt (record: FanOutRecord): Promise<void> {
    const { tenants, membership: { registry, memberId }, pools } = this.#options
    const { tenantId } = record
    const isCalm = this.#isCalm(record, pools.look(tenantId))
    if (decideFanIn(memberId, await registry.readBinding(tenantId), record, isCalm) === 'stay') return
    await tenants.tryAlone(tenantId, client => this.#goOrSettle(client, tenantId))
  }

  async #goOrSettle (client: pg.PoolClient, tenantId: string): Promise<void> {
    const { settings, records, membership: { registry, memberId, member }, log } = this.#options
    const record = await records.read(client, tenantId)
    const binding = await registry.readBinding(tenantId)
    // Calm until a moment ago, and so still unless another pod has been saturated, or has gone, since.
    if (record === null || !binding.some(pod => pod.memberId === memberId)) return
    const decision = decideFanIn(memberId, binding, record, quietTime(record, settings.cacheTtl) >= settings.fanInCalm)
    if (decision === 'settled') await records.remove(client, tenantId)
    if (decision !== 'leave') return
    // Transactions that are open here go on: their locks lead here whatever the binding says.
    await member.removeFromDestination(tenantId)
    this.#calmSince.delete(tenantId)
    log.info({ tenantId }, 'left a tenant that calmed down')
    if (binding.filter(pod => pod.isLive).length > 2) await records.markChanged(client, tenantId)
    else await records.remove(client, tenantId)
  }

  /** Whether neither this pod nor another one of the tenant has been busy for FAN_IN_CALM, nor a pod come or gone. */
  #isCalm (record: FanOutRecord, { use, wasSaturated }: Look): boolean {
    const { cacheTtl, fanInCalm } = this.#options.settings
    const now = performance.now()
    const since = this.#calmSince.get(record.tenantId) ?? now
    this.#calmSince.set(record.tenantId, wasSaturated || use > maxCalmUse ? now : since)
    return now - since >= fanInCalm && !wasSaturated && use <= maxCalmUse && quietTime(record, cacheTtl) >= fanInCalm
  }

  /** A decision that could not be made now is made later: the tenant is still saturated, or still calm. */
  async #tolerate (tenantId: string, decide: () => Promise<unknown>): Promise<void> {
    try {
      await decide()
    } catch (error) {
      this.#options.log.warn({ err: error, tenantId }, 'could not decide about the pods of a tenant')
    }
  }
}

/** Milliseconds for which the tenant as a whole has been quiet. A change is seen by coordinators when their caches end, and counts from then. */
function quietTime ({ changedAgo, saturatedAgo }: FanOutRecord, cacheTtl: number): number {
  return Math.min(changedAgo - cacheTtl, saturatedAgo)
}
