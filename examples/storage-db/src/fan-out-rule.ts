// The decisions of fan-out.ts as pure functions: what follows from the pods of a tenant and what is recorded of it. Every pod that is given the
// same comes to the same.

import type { BoundPod, MemberInfo } from '@platformatic/coordinator'

/** What is recorded of a tenant that lives on several pods. */
export interface FanOutRecord {
  readonly tenantId: string
  /** The pod that had the tenant alone, and stays. */
  readonly keeper: string
  /** Milliseconds since a pod was added or left. */
  readonly changedAgo: number
  /** Milliseconds since one of its pods was saturated. */
  readonly saturatedAgo: number
}

export interface FanOutLimits {
  readonly maxPodsPerTenant: number
  /** Milliseconds a pod that was added has to make a difference: coordinators hear of it when their caches end. */
  readonly helpTime: number
}

/**
 * Whether a saturated tenant gets another pod.
 * @returns the pods to try, the idlest first; empty when there is none, or none is to be added
 */
export function rankPeers (memberId: string, binding: readonly BoundPod[], record: FanOutRecord | null, peers: readonly MemberInfo[], limits: FanOutLimits): MemberInfo[] {
  const live = binding.filter(pod => pod.isLive)
  // Requests that a coordinator sends here by an old binding are no reason to change the present one.
  if (!live.some(pod => pod.memberId === memberId)) return []
  if (live.length >= limits.maxPodsPerTenant) return []
  if (record !== null && live.length > 1 && record.changedAgo < limits.helpTime) return []
  const isBound = new Set(binding.map(pod => pod.memberId))
  return peers
    .filter(peer => !peer.draining && !isBound.has(peer.memberId))
    .sort((a, b) => toRank(a.load) - toRank(b.load))
}

/**
 * The pod that stays when a tenant calms down: the one that had it alone, and when that is gone, or on its way out, the first by name of those
 * that are left. Null when all are on their way out.
 */
export function findKeeper (recorded: string | undefined, binding: readonly BoundPod[]): string | null {
  const staying = binding.filter(pod => pod.isLive && !pod.member.draining).map(pod => pod.memberId)
  if (recorded !== undefined && staying.includes(recorded)) return recorded
  return staying.sort().at(0) ?? null
}

/**
 * What a pod does about a tenant of several pods. `leave`: it is calm and an extra one · `settled`: it has the tenant alone (again), nothing is
 * left to decide · `stay`
 */
export function decideFanIn (memberId: string, binding: readonly BoundPod[], record: FanOutRecord, isCalm: boolean): 'leave' | 'settled' | 'stay' {
  const live = binding.filter(pod => pod.isLive)
  if (!live.some(pod => pod.memberId === memberId)) return 'stay'
  if (live.length === 1) return 'settled'
  const keeper = findKeeper(record.keeper, binding)
  return isCalm && keeper !== null && keeper !== memberId ? 'leave' : 'stay'
}

/** A pod that does not know its load ranks behind those that do. */
function toRank (load: number): number {
  return Number.isFinite(load) ? load : Number.MAX_VALUE
}
