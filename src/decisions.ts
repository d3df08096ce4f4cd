import type { CoordinatorError } from './errors.ts'
import { decodeCandidate, ReplyReader } from './reply-reader.ts'
import { toCoordinatorError } from './store-errors.ts'
import type { CommandKind } from './store-errors.ts'
import type { Candidate } from './types.ts'

/** A live pod of a destination, as read. Destinations that were read together share it. */
export interface LivePod extends Candidate {
  /** Milliseconds its record had left; Infinity for one that does not expire. */
  remainingMs: number
}

/** Present figures of a member. */
export interface Figures {
  memberId: string
  load: number
  pending: number
}

/** What is known of one destination after a script looked at it. */
export interface Decision {
  status: 'bound' | 'claimed' | 'reassigned' | 'refused' | 'orphaned' | 'empty'
  live: LivePod[]
  /** The dead pods of the set; after 'reassigned' those that were replaced. */
  dead: string[]
  /** Of the candidates that were looked at and usable: one list for all that was asked together. */
  figures: Figures[]
}

/** Reads the reply of resolve.lua or claim.lua: for each destination its decision, or the error that befell it alone. */
export function decodeDecisions (raw: unknown, count: number, kind: CommandKind): (Decision | CoordinatorError)[] {
  const [podTexts, answerTexts, figureTexts = []] = raw as [unknown[], unknown[], unknown[]?]
  const pods = decodeAll(podTexts, decodePod)
  const figures = decodeAll(figureTexts, decodeFigures)
  const answers = new ReplyReader(answerTexts)
  const decisions: (Decision | CoordinatorError)[] = []
  while (decisions.length < count) {
    const status = answers.text() as Decision['status'] | 'error'
    if (status === 'error') decisions.push(toCoordinatorError(answers.text(), kind))
    else decisions.push({ status, live: answers.list(() => pods[answers.count() - 1] as LivePod), dead: answers.list(() => answers.text()), figures })
  }
  return decisions
}

function decodeAll<T> (texts: unknown[], decode: (reply: ReplyReader) => T): T[] {
  const reply = new ReplyReader(texts)
  const all: T[] = []
  while (!reply.isAtEnd) all.push(decode(reply))
  return all
}

function decodePod (reply: ReplyReader): LivePod {
  const { memberId, address, load, pending, draining } = decodeCandidate(reply)
  return { memberId, address, load, pending, draining, remainingMs: reply.milliseconds() }
}

function decodeFigures (reply: ReplyReader): Figures {
  return { memberId: reply.text(), load: reply.load(), pending: reply.pending() }
}
