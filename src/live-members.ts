import type { BackgroundWork } from './background-work.ts'
import { byMemberId } from './binding-cache.ts'
import { publish } from './diagnostics.ts'
import type { Scripts } from './scripts.ts'
import type { Candidate, MemberInfo } from './types.ts'

const pageSize = 100
// Pages in flight at once: enough to hide the round trips, few enough to leave other callers their turn.
const pagesAtOnce = 8

export interface LiveMembers {
  /** All live members, draining ones too, sorted by memberId. */
  live: Candidate[]
  /** Ids in the set of members without a record. */
  dead: string[]
}

/** Reads all live members: one round trip for up to 100, else one or two and one for each 100, several at once. */
async function readLiveMembers (scripts: Scripts): Promise<LiveMembers> {
  const first = await scripts.listMembers()
  if (first.status === 'page') return { live: first.live.sort(byMemberId), dead: first.dead }
  const memberIds = first.status === 'ids' ? first.memberIds : await scripts.readMemberIds()
  const live: Candidate[] = []
  const dead: string[] = []
  let next = 0
  const readPages = async (): Promise<void> => {
    while (next < memberIds.length) {
      const from = next
      next += pageSize
      const page = await scripts.listMembers(memberIds.slice(from, next))
      if (page.status !== 'page') return
      live.push(...page.live)
      dead.push(...page.dead)
    }
  }
  await Promise.all(Array.from({ length: pagesAtOnce }, readPages))
  return { live: live.sort(byMemberId), dead }
}

/** Reads all live members, and has the ids of dead ones pruned in the background. */
export async function readAndPruneMembers (scripts: Scripts, background: BackgroundWork, keyPrefix: string): Promise<LiveMembers> {
  const members = await readLiveMembers(scripts)
  const { dead } = members
  if (dead.length > 0) {
    background.start('prune the members', async () => {
      let count = 0
      for (let from = 0; from < dead.length; from += pageSize) count += await scripts.pruneMembers(dead.slice(from, from + pageSize))
      if (count > 0) publish('prune', { keyPrefix, count })
    })
  }
  return members
}

/** The public form of a member. */
export function toMemberInfo ({ memberId, address, load, draining }: Candidate): MemberInfo {
  return { memberId, address, load, draining }
}
