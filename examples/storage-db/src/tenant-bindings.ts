// What this pod changes of the bindings of tenants, in an order that holds for each of them.
//
// Every request for a tenant claims it for some pod, before anybody knows whether there is such a tenant. The pod that finds none gives the
// binding back. In between another request may create the tenant, and rely on the binding: so what changes one tenant goes one after another.

import type { IsGone } from './client.ts'
import type { PodMembership } from './pod-membership.ts'
import type { Tenants } from './tenants.ts'
import { Turns } from './turns.ts'
import { isTenantId } from './values.ts'

/** Tenants that are looked up in one statement. */
const pageSize = 1000
/** Bindings to look at again, at most; what is beyond is looked at with the next request for it. */
const maxDoubtful = 10_000

export class TenantBindings {
  readonly #tenants: Tenants
  readonly #membership: PodMembership
  readonly #turns = new Turns()
  /** Tenants that were asked for while PostgreSQL was away: whether they exist is not known yet. */
  readonly #doubtful = new Set<string>()

  readonly #straysInterval: number
  #lookedForStraysAt: number

  constructor (tenants: Tenants, membership: PodMembership, straysInterval: number) {
    this.#tenants = tenants
    this.#membership = membership
    this.#straysInterval = straysInterval
    this.#lookedForStraysAt = performance.now()
  }

  /** @throws STORAGE_CLIENT_GONE */
  async create (tenantId: string, isGone: IsGone): Promise<'created' | 'present'> {
    return await this.#turns.run(tenantId, async () => {
      const status = await this.#tenants.create(tenantId, isGone)
      await this.#membership.bindIfFree(tenantId)
      return status
    })
  }

  /** False when there is no such tenant. @throws STORAGE_CLIENT_GONE, STORAGE_TENANT_BUSY */
  async drop (tenantId: string, isGone: IsGone): Promise<boolean> {
    return await this.#turns.run(tenantId, async () => {
      const existed = await this.#tenants.drop(tenantId, isGone)
      // The coordinator does so too when it hears of the 204, if it is still there by then.
      if (existed) await this.#membership.forget(tenantId)
      return existed
    })
  }

  /** Gives a tenant back if there is no such tenant; later, if that cannot be found out now. Never rejects. */
  async giveBackIfMissing (tenantId: string): Promise<void> {
    // No coordinator claims what is no tenant id, and PostgreSQL could not look for it.
    if (!isTenantId(tenantId)) return
    await this.#turns.run(tenantId, async () => {
      this.#doubtful.delete(tenantId)
      try {
        if (!await this.#tenants.exists(tenantId)) await this.#membership.giveBack(tenantId)
      } catch {
        if (this.#doubtful.size < maxDoubtful) this.#doubtful.add(tenantId)
      }
    })
  }

  /**
   * Gives back the bindings of tenants that do not exist. A coordinator claims before the pod hears of the request, which may then never
   * come: its client left, or it was cut on the way. Called with each heartbeat, does something once in each interval. Never rejects.
   */
  async giveBackStrays (): Promise<void> {
    if (performance.now() - this.#lookedForStraysAt < this.#straysInterval) return
    this.#lookedForStraysAt = performance.now()
    try {
      const owned = await this.#membership.listOwned()
      for (let at = 0; at < owned.length; at += pageSize) {
        const page = owned.slice(at, at + pageSize)
        const missing = new Set(await this.#tenants.listMissing(page.filter(isTenantId)))
        for (const tenantId of page) {
          // One that is created meanwhile keeps its binding: it is looked at once more, in its turn.
          if (!isTenantId(tenantId)) await this.#membership.giveBack(tenantId)
          else if (missing.has(tenantId)) await this.giveBackIfMissing(tenantId)
        }
      }
    } catch {
      // Valkey or PostgreSQL is away: the next time.
    }
  }

  /** Looks again at those it could not look at. Called now and then. */
  async resolveDoubts (): Promise<void> {
    for (const tenantId of [...this.#doubtful]) {
      await this.giveBackIfMissing(tenantId)
      if (this.#doubtful.has(tenantId)) return // PostgreSQL is still away
    }
  }
}
