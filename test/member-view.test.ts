import assert from 'node:assert/strict'
import test from 'node:test'
import type { LiveMembers } from '../src/live-members.ts'
import { MemberView } from '../src/member-view.ts'
import type { Candidate } from '../src/types.ts'
import { candidate } from './support/candidates.ts'

interface Stage {
  view: MemberView
  clock: { ms: number }
  /** Reads that were sent; each is answered when the test says so. */
  reads: { answer: (...live: Candidate[]) => Promise<void>, fail: (error: Error) => Promise<void> }[]
  /** Refreshes nobody waits for. */
  refreshes: Promise<unknown>[]
}

function setStage (): Stage {
  const clock = { ms: 10_000 }
  const reads: Stage['reads'] = []
  const refreshes: Promise<unknown>[] = []
  const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
  const view = new MemberView({
    read: () => new Promise<LiveMembers>((resolve, reject) => {
      reads.push({
        async answer (...live) {
          resolve({ live, dead: [] })
          await turn()
        },
        async fail (error) {
          reject(error)
          await turn()
        }
      })
    }),
    startRefresh: refresh => { refreshes.push(refresh().catch((error: unknown) => error)) },
    now: () => clock.ms
  })
  return { view, clock, reads, refreshes }
}

const ids = (candidates: Candidate[]): string => candidates.map(({ memberId }) => memberId).join()

/** A stage whose view was read at the present moment. */
async function setReadStage (...live: Candidate[]): Promise<Stage> {
  const stage = setStage()
  const waiting = stage.view.candidates()
  assert.ok(waiting instanceof Promise, 'an empty view is read first')
  await stage.reads[0]?.answer(...live)
  await waiting
  return stage
}

test('MemberView: an empty view is read first, and 50 that ask meanwhile share the read', async () => {
  const { view, reads, clock } = setStage()
  assert.equal(view.readAt, -Infinity)
  const waiting = Array.from({ length: 50 }, () => view.candidates())
  clock.ms += 700
  await reads[0]?.answer(candidate('a'))
  for (const candidates of await Promise.all(waiting)) assert.equal(ids(candidates), 'a')
  assert.equal(reads.length, 1)
  assert.equal(view.readAt, 10_000, 'it is as old as the moment at which the read was sent')
})

test('MemberView: up to 1 s it is fresh: used at once, nothing is read', async () => {
  const { view, reads, refreshes, clock } = await setReadStage(candidate('a'))
  clock.ms += 1000
  assert.equal(ids(view.candidates() as Candidate[]), 'a')
  assert.deepEqual([reads.length, refreshes.length], [1, 0])
})

test('MemberView: after 1 s it is used once more while one refresh runs, for all who ask', async () => {
  const { view, reads, refreshes, clock } = await setReadStage(candidate('a'))
  clock.ms += 1001
  for (let at = 0; at < 50; at++) assert.equal(ids(view.candidates() as Candidate[]), 'a')
  assert.deepEqual([reads.length, refreshes.length], [2, 1])

  await reads[1]?.answer(candidate('a'), candidate('b'))
  assert.equal(ids(view.candidates() as Candidate[]), 'a,b')
  clock.ms += 1000
  assert.equal(ids(view.candidates() as Candidate[]), 'a,b')
  assert.deepEqual([reads.length, refreshes.length], [2, 1])
})

test('MemberView: after 5 s, not at 5 s, it is read first', async () => {
  const { view, reads, clock } = await setReadStage(candidate('a'))
  clock.ms += 5000
  assert.equal(ids(view.candidates() as Candidate[]), 'a')
  await reads[1]?.fail(new Error('away'))
  clock.ms += 1
  const waiting = view.candidates()
  assert.ok(waiting instanceof Promise)
  await reads[2]?.answer(candidate('b'))
  assert.equal(ids(await waiting), 'b')
})

test('MemberView: who needs it after 5 s joins the refresh under way', async () => {
  const { view, reads, clock } = await setReadStage(candidate('a'))
  clock.ms += 4000
  view.candidates()
  clock.ms += 2000
  const waiting = view.candidates()
  assert.equal(reads.length, 2)
  await reads[1]?.answer(candidate('b'))
  assert.equal(ids(await waiting), 'b')
})

test('MemberView: a view with no member to choose is read by every call, draining ones are none', async () => {
  const { view, reads } = await setReadStage(candidate('a', 0, 0, true))
  const waiting = view.candidates()
  assert.ok(waiting instanceof Promise)
  await reads[1]?.answer(candidate('a', 0, 0, true), candidate('b'))
  assert.equal(ids(await waiting), 'b')
})

test('MemberView: a refresh that fails leaves the view in use, and the next call starts another', async () => {
  const { view, reads, refreshes, clock } = await setReadStage(candidate('a'))
  clock.ms += 2000
  view.candidates()
  await reads[1]?.fail(new Error('away'))
  assert.equal(ids(view.candidates() as Candidate[]), 'a')
  assert.deepEqual([reads.length, refreshes.length], [3, 2])
})

test('MemberView: a first read that fails rejects who waits, and the next call reads again', async () => {
  const { view, reads } = setStage()
  const waiting = Promise.resolve(view.candidates())
  const rejected = assert.rejects(waiting, /away/)
  await reads[0]?.fail(new Error('away'))
  await rejected
  const again = view.candidates()
  await reads[1]?.answer(candidate('a'))
  assert.equal(ids(await again), 'a')
})

test('MemberView: candidatesSince takes a list that was sent for at that time or later, else reads', async () => {
  const { view, reads, clock } = await setReadStage(candidate('a'))
  assert.equal(ids(await view.candidatesSince(10_000)), 'a')
  assert.equal(ids(await view.candidatesSince(9000)), 'a')
  assert.equal(reads.length, 1)

  clock.ms = 10_001
  const waiting = Array.from({ length: 50 }, () => view.candidatesSince(10_001))
  assert.equal(reads.length, 2, 'those that ask together share one')
  await reads[1]?.answer(candidate('b'))
  for (const candidates of await Promise.all(waiting)) assert.equal(ids(candidates), 'b')
})

test('MemberView: candidatesSince does not join a read that was sent before', async () => {
  const { view, reads, clock } = setStage()
  const early = view.candidates()
  clock.ms += 10
  const late = view.candidatesSince(clock.ms)
  clock.ms += 5

  await reads[0]?.answer(candidate('old'))
  assert.equal(ids(await early), 'old')
  assert.equal(reads.length, 2, 'sent when the earlier one was answered')
  await reads[1]?.answer(candidate('new'))
  assert.equal(ids(await late), 'new')
  assert.equal(view.readAt, 10_015)
})

test('MemberView: takes a list read for another purpose, unless it knows a newer one', async () => {
  const { view, clock } = await setReadStage(candidate('a'))
  view.replace({ live: [candidate('old')], dead: [] }, 9999)
  assert.equal(ids(view.candidates() as Candidate[]), 'a')
  clock.ms = 10_500
  view.replace({ live: [candidate('new'), candidate('draining', 0, 0, true)], dead: ['x'] }, 10_500)
  assert.equal(ids(view.candidates() as Candidate[]), 'new')
  assert.equal(view.readAt, 10_500)
})

test('MemberView: figures of a claim change the members it knows, and no others', async () => {
  const { view } = await setReadStage(candidate('a', 1), candidate('b', 2))
  view.update([{ memberId: 'b', load: 7, pending: 3 }, { memberId: 'gone', load: 1, pending: 1 }])
  assert.deepEqual(view.candidates(), [candidate('a', 1), candidate('b', 7, 3)])
  assert.equal(view.readAt, 10_000, 'figures of a few make the list no younger')
})

test('MemberView: of 50 that want a read of their own, those who come while one is under way share the next', async () => {
  const { view, reads, clock } = setStage()
  const waiting = Array.from({ length: 50 }, () => {
    clock.ms++
    return view.candidatesSince(clock.ms)
  })
  assert.equal(reads.length, 1)
  await reads[0]?.answer(candidate('a'))
  assert.equal(ids(await waiting[0] as Candidate[]), 'a')
  assert.equal(reads.length, 2, 'the other 49 asked after the first read was sent')
  const late = view.candidatesSince(++clock.ms)
  await reads[1]?.answer(candidate('a'), candidate('b'))
  for (const candidates of await Promise.all(waiting.slice(1))) assert.equal(ids(candidates), 'a,b')
  assert.equal(reads.length, 3)
  await reads[2]?.answer(candidate('c'))
  assert.equal(ids(await late), 'c')
})

test('MemberView: those who wait for the next read fail with the earlier, and the one after them reads anew', async () => {
  const { view, reads, clock } = setStage()
  const waiting = Array.from({ length: 3 }, () => {
    clock.ms++
    return view.candidatesSince(clock.ms)
  })
  await Promise.all([reads[0]?.fail(new Error('away')), ...waiting.map(async candidates => await assert.rejects(candidates, { message: 'away' }))])
  assert.equal(reads.length, 1)
  const next = view.candidatesSince(++clock.ms)
  assert.equal(reads.length, 2)
  await reads[1]?.answer(candidate('b'))
  assert.equal(ids(await next), 'b')
})
