import assert from 'node:assert/strict'
import test from 'node:test'
import { CoordinatorError, isCoordinatorError } from '../src/errors.ts'
import { GatheredCalls } from '../src/gathered-calls.ts'

interface Call {
  readonly questions: number[]
  answer (answers?: (number | CoordinatorError)[]): void
  fail (error: Error): void
}

/** Calls whose answers the test gives; an answer's weight is its value. */
function setCalls (): { calls: Call[], gathered: GatheredCalls<number, number> } {
  const calls: Call[] = []
  const gathered = new GatheredCalls<number, number>({
    ask: questions => new Promise((resolve, reject) => {
      calls.push({ questions, answer: (answers = questions.map(() => 1)) => resolve(answers), fail: reject })
    }),
    weigh: answer => answer
  })
  return { calls, gathered }
}

const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const count = (length: number): number[] => Array.from({ length }, (_, at) => at)

test('GatheredCalls: one alone goes out at once', async () => {
  const { calls, gathered } = setCalls()
  for (const question of [7, 8]) {
    const answer = gathered.ask(question)
    assert.deepEqual(calls.at(-1)?.questions, [question])
    calls.at(-1)?.answer([question * 2])
    assert.equal(await answer, question * 2)
  }
  assert.equal(calls.length, 2)
})

test('GatheredCalls: what comes while a call is under way goes out together, each with its own answer', async () => {
  const { calls, gathered } = setCalls()
  const answers = Promise.all(count(20).map(question => gathered.ask(question)))
  assert.equal(calls.length, 1)
  calls[0]?.answer([100])
  await settle()
  assert.deepEqual(calls.map(({ questions }) => questions), [[0], count(20).slice(1)])
  calls[1]?.answer(count(20).slice(1).map(question => question + 100))
  assert.deepEqual(await answers, count(20).map(question => question + 100))
})

test('GatheredCalls: a call has 32 questions at most, and no other goes out before all of a wave are answered', async () => {
  const { calls, gathered } = setCalls()
  const answers = Promise.all(count(71).map(question => gathered.ask(question)))
  calls[0]?.answer()
  await settle()
  assert.deepEqual(calls.map(({ questions }) => questions.length), [1, 32, 32, 6])
  const late = gathered.ask(1000)
  calls[3]?.answer()
  calls[1]?.answer()
  await settle()
  assert.equal(calls.length, 4)
  calls[2]?.answer()
  await settle()
  assert.deepEqual(calls[4]?.questions, [1000])
  calls[4]?.answer([5])
  assert.equal(await late, 5)
  assert.equal((await answers).length, 71)
})

test('GatheredCalls: where destinations have many pods a call has fewer questions, and again more when they have not', async () => {
  const { calls, gathered } = setCalls()
  const ask = (length: number): void => { for (const question of count(length)) gathered.ask(question).catch(() => {}) }
  ask(1)
  calls[0]?.answer([25])
  await settle()
  ask(5)
  calls[1]?.answer([25])
  await settle()
  assert.deepEqual(calls.slice(2).map(({ questions }) => questions.length), [2, 2], 'about 50 pods a call')
  for (const call of calls.slice(2)) call.answer([1, 1])
  for (let round = 0; round < 8; round++) {
    await settle()
    ask(1)
    calls.at(-1)?.answer([1])
  }
  await settle()
  ask(33)
  calls.at(-1)?.answer([1])
  await settle()
  assert.equal(calls.at(-1)?.questions.length, 32)
})

test('GatheredCalls: the error of one answer reaches its own caller alone', async () => {
  const { calls, gathered } = setCalls()
  const refused = new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', 'on purpose')
  gathered.ask(0).catch(() => {})
  const answers = Promise.allSettled([1, 2, 3, 4].map(question => gathered.ask(question)))
  calls[0]?.answer()
  await settle()
  calls[1]?.answer([10, refused, 30])
  const [first, second, third, fourth] = await answers
  assert.deepEqual([first, second, third], [{ status: 'fulfilled', value: 10 }, { status: 'rejected', reason: refused }, { status: 'fulfilled', value: 30 }])
  assert.ok(fourth?.status === 'rejected' && isCoordinatorError(fourth.reason, 'PLT_COORDINATOR_STORE_REFUSED'), 'a reply that is too short')
})

test('GatheredCalls: a call that was refused fails its own questions, and those that wait go out', async () => {
  const { calls, gathered } = setCalls()
  const refused = new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', 'on purpose')
  const first = gathered.ask(1)
  const second = gathered.ask(2)
  calls[0]?.fail(refused)
  await assert.rejects(first, refused)
  assert.deepEqual(calls[1]?.questions, [2])
  calls[1]?.answer([9])
  assert.equal(await second, 9)
})

test('GatheredCalls: behind a store that is away those that wait fail too, unsent, and the next one is sent', async () => {
  const { calls, gathered } = setCalls()
  const away = new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', 'on purpose')
  const answers = Promise.allSettled(count(40).map(question => gathered.ask(question)))
  calls[0]?.fail(away)
  assert.deepEqual(new Set((await answers).map(each => each.status === 'rejected' && each.reason)), new Set([away]))
  assert.equal(calls.length, 1)
  const next = gathered.ask(1)
  assert.equal(calls.length, 2)
  calls[1]?.answer([3])
  assert.equal(await next, 3)
})
