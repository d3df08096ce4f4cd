import type { Phase, Results, Statuses } from './tally.ts'

/** What `--json` prints. Times are milliseconds. */
export interface Summary {
  ok: boolean
  verdict: string
  durationMs: number
  keyPrefix: string
  destinations: number
  /** Destinations for which the store names no live pod. */
  ownerless: number
  /** Destinations whose last request failed. */
  failing: number
  sent: number
  answered: number
  failed: number
  /** Requests that reached a pod which, by the store, did not own the destination: those answered 421. */
  misrouted: number
  failedByPhase: Record<Phase, number>
  /** How many requests the clients saw answered with which HTTP status; 'none' for those without an answer. */
  statuses: Statuses
  /** How many requests ended how for the coordinators. */
  results: Results
  longestGapMs: number
  killed: Departure
  drained: Departure
  pods: Array<{ memberId: string, pid: number, state: string, destinations: number, requests: number }>
}

export interface Departure {
  memberId: string
  /** Destinations that the pod owned just before. */
  destinations: number
  /** Destinations that were orphaned and had to be reassigned. */
  reassigned: number
}

/** Judges a run: `ok` decides about the exit code, `verdict` says why in one line. */
export function judge (run: Pick<Summary, 'destinations' | 'ownerless' | 'failing' | 'answered' | 'misrouted'>): Pick<Summary, 'ok' | 'verdict'> {
  const faults: string[] = []
  if (run.destinations === 0 || run.answered === 0) faults.push('nothing was tested')
  if (run.ownerless > 0) faults.push(`${count(run.ownerless, 'destination')} without an owner`)
  if (run.failing > 0) faults.push(`${count(run.failing, 'destination')} did not recover`)
  if (run.misrouted > 0) faults.push(`${count(run.misrouted, 'request')} went to a pod that did not own the destination`)
  return faults.length > 0
    ? { ok: false, verdict: `failed: ${faults.join(', ')}` }
    : { ok: true, verdict: 'ok: all destinations have an owner, no request was misrouted' }
}

/** The closing lines for a reader. */
export function describe (summary: Summary): string[] {
  const { failedByPhase, killed, drained } = summary
  const elsewhere = summary.failed - failedByPhase.kill - failedByPhase.drain
  return [
    '',
    `  requests      ${summary.sent} sent, ${summary.answered} answered, ${summary.failed} failed`,
    `  statuses      ${list(summary.statuses)}`,
    `  results       ${list(summary.results)}`,
    `  failed        ${failedByPhase.kill} after the kill, ${failedByPhase.drain} during the drain, ${elsewhere} otherwise`,
    `  misrouted     ${summary.misrouted}`,
    `  longest gap   ${summary.longestGapMs} ms from a destination's first failure to its next answer`,
    `  moved         ${killed.reassigned} reassigned from ${killed.memberId}, ` +
      `${drained.destinations - drained.reassigned} handed over by ${drained.memberId}`,
    `  destinations  ${summary.pods.map(pod => `${pod.memberId} ${pod.destinations}`).join(', ')}; without an owner ${summary.ownerless}`,
    `  verdict       ${summary.verdict}`
  ]
}

function list (counts: Record<string, number>): string {
  return Object.entries(counts).map(([name, n]) => `${name}: ${n}`).join(', ')
}

function count (n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}
