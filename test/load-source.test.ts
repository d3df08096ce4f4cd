import assert from 'node:assert/strict'
import test from 'node:test'
import type { CoordinatorError } from '../src/errors.ts'
import { LoadSource } from '../src/load-source.ts'

function setSource (getLoad: () => unknown, timeoutMs = 60_000): { source: LoadSource, reports: CoordinatorError[] } {
  const reports: CoordinatorError[] = []
  return { source: new LoadSource(getLoad, timeoutMs, error => reports.push(error)), reports }
}

/** Gives one after the other: a value, or what a function returns or throws. */
function inTurn (...loads: unknown[]): () => unknown {
  let at = 0
  return () => {
    const load = loads[Math.min(at++, loads.length - 1)]
    return typeof load === 'function' ? load() : load
  }
}

test('LoadSource: gives what getLoad returns, now or later, and remembers it', async () => {
  const { source, reports } = setSource(inTurn(0.9, Promise.resolve(-2), 0))
  assert.ok(Number.isNaN(source.last), 'before the first call there is none')
  for (const load of [0.9, -2, 0]) {
    assert.equal(await source.read(), load)
    assert.equal(source.last, load)
  }
  assert.deepEqual(reports, [])
})

test('LoadSource: a value that is no finite number is NaN from then on, and reported with what came (G11)', async () => {
  for (const [value, got] of [
    [NaN, 'NaN (number)'], [Infinity, 'Infinity (number)'], [-Infinity, '-Infinity (number)'], [undefined, 'undefined'], [null, 'null'], ['5', '"5" (string)'], [5n, '5 (bigint)'],
    [{}, 'an object'], [[1], 'an array'], [true, 'true (boolean)'], [Promise.resolve('x'), '"x" (string)']
  ]) {
    const { source, reports } = setSource(inTurn(7, value))
    await source.read()
    assert.ok(Number.isNaN(await source.read()), String(got))
    assert.ok(Number.isNaN(source.last))
    assert.deepEqual(reports.map(({ code, message }) => [code, message]), [['PLT_COORDINATOR_LOAD_UNKNOWN', `Expected getLoad to return a finite number, got ${String(got)}`]])
  }
})

test('LoadSource: when getLoad throws or rejects the last good load stands, and the cause is reported (G11)', async () => {
  const cause = new Error('pool closed')
  const { source, reports } = setSource(inTurn(7, () => { throw cause }, () => Promise.reject(cause), 8))
  assert.deepEqual([await source.read(), await source.read(), await source.read(), await source.read()], [7, 7, 7, 8])
  assert.deepEqual(reports.map(({ code, message, cause }) => [code, message, cause]), [
    ['PLT_COORDINATOR_LOAD_UNKNOWN', 'getLoad threw an error (see cause)', cause], ['PLT_COORDINATOR_LOAD_UNKNOWN', 'getLoad threw an error (see cause)', cause]
  ])
})

test('LoadSource: without a good load ever there is none', async () => {
  const { source, reports } = setSource(() => { throw new Error('not ready') })
  assert.ok(Number.isNaN(await source.read()))
  assert.equal(reports.length, 1)
})

test('LoadSource: a getLoad that hangs is given its time, then the last good load stands and it is reported', async () => {
  const { source, reports } = setSource(inTurn(7, () => new Promise(() => {})), 20)
  await source.read()
  assert.equal(await source.read(), 7)
  assert.equal(source.last, 7)
  assert.deepEqual(reports.map(({ code, message }) => [code, message]), [['PLT_COORDINATOR_LOAD_UNKNOWN', 'getLoad took longer than 20 ms']])
})

test('LoadSource: 50 reads at once share one call', async () => {
  let calls = 0
  const { source } = setSource(() => {
    calls++
    return new Promise(() => {})
  }, 10)
  const loads = await Promise.all(Array.from({ length: 50 }, () => source.read()))
  assert.deepEqual([calls, new Set(loads)], [1, new Set([NaN])])
})

test('LoadSource: while a call that was late still hangs later reads answer at once, and its late answer counts for the next', async () => {
  let calls = 0
  let answer = (_load: number): void => {}
  const { source, reports } = setSource(() => {
    calls++
    return new Promise(resolve => { answer = resolve })
  }, 10)
  await source.read()
  assert.equal(reports.length, 1)
  // At once: before any timer, however short, can have run.
  let isTimerRun = false
  const timer = setTimeout(() => { isTimerRun = true }, 0)
  for (let at = 0; at < 50; at++) assert.ok(Number.isNaN(await source.read()))
  assert.deepEqual([isTimerRun, calls, reports.length], [false, 1, 1])
  clearTimeout(timer)

  answer(3)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(source.last, 3)
  assert.equal(calls, 1)
  const next = source.read()
  assert.equal(calls, 2)
  answer(4)
  assert.equal(await next, 4)
})

test('LoadSource: a late failure is reported and never left unhandled (G45)', async t => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): void => { unhandled.push(reason) }
  process.on('unhandledRejection', listen)
  t.after(() => process.off('unhandledRejection', listen))
  let fail = (_error: Error): void => {}
  const { source, reports } = setSource(inTurn(7, () => new Promise((_resolve, reject) => { fail = reject })), 10)
  await source.read()
  await source.read()
  const cause = new Error('late')
  fail(cause)
  await new Promise(resolve => setImmediate(resolve))

  assert.deepEqual(reports.map(({ cause }) => cause), [undefined, cause])
  assert.equal(source.last, 7)
  assert.deepEqual(unhandled, [])
})

test('LoadSource: stopWaiting ends every wait at once, with the load last known and without a report', async () => {
  const { source, reports } = setSource(inTurn(7, () => new Promise(() => {})))
  await source.read()
  const waiting = Array.from({ length: 50 }, () => source.read())
  source.stopWaiting()
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([7]))
  assert.deepEqual(reports, [])
})
