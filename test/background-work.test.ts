import assert from 'node:assert/strict'
import test from 'node:test'
import { BackgroundWork } from '../src/background-work.ts'
import { CoordinatorError } from '../src/errors.ts'
import { until } from './support/store.ts'

interface Stage { background: BackgroundWork, reports: CoordinatorError[] }

function setStage (): Stage {
  const reports: CoordinatorError[] = []
  return { background: new BackgroundWork(error => reports.push(error)), reports }
}

/** Work that goes on until the test ends it. */
function setWork (): { run: () => Promise<void>, end: () => void, readonly started: number } {
  const ends: (() => void)[] = []
  return {
    run: () => new Promise<void>(resolve => ends.push(resolve)),
    end: () => { for (const end of ends) end() },
    get started () { return ends.length }
  }
}

test('BackgroundWork: at most one work of a name runs at a time, and the next may start after it', async () => {
  const { background, reports } = setStage()
  const [work, other] = [setWork(), setWork()]
  for (let at = 0; at < 50; at++) background.start('prune d', work.run)
  background.start('prune e', other.run)
  await until(() => work.started > 0 && other.started > 0, 'both works run')
  assert.deepEqual([work.started, other.started], [1, 1])

  work.end()
  await until(() => {
    background.start('prune d', work.run)
    return work.started === 2
  }, 'the name is free again')
  work.end()
  other.end()
  await background.close()
  assert.deepEqual(reports, [])
})

test('BackgroundWork: close waits for all that runs and lets nothing new start', async () => {
  const { background } = setStage()
  const [first, second, late] = [setWork(), setWork(), setWork()]
  background.start('first', first.run)
  background.start('second', second.run)
  await until(() => first.started + second.started === 2, 'both works run')
  let isClosed = false
  const closing = background.close().then(() => { isClosed = true })
  background.start('late', late.run)

  first.end()
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(isClosed, false)
  second.end()
  await closing
  background.start('later', late.run)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(late.started, 0)
  await background.close()
})

test('BackgroundWork: close waits for work that was started just before', async () => {
  const { background } = setStage()
  let isDone = false
  background.start('work', async () => {
    await new Promise(resolve => setImmediate(resolve))
    isDone = true
  })
  await background.close()
  assert.equal(isDone, true)
})

test('BackgroundWork: a failure is reported once, coded, with what lay beneath, and never left unhandled (G45)', async t => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown): void => { unhandled.push(reason) }
  process.on('unhandledRejection', listen)
  t.after(() => process.off('unhandledRejection', listen))
  const { background, reports } = setStage()
  const coded = new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', 'mine')
  const cause = new Error('beneath')

  background.start('coded', async () => { throw coded })
  background.start(`bare ${'x'.repeat(1000)}`, async () => { throw cause })
  background.start('at once', () => { throw cause })
  await background.close()
  await new Promise(resolve => setImmediate(resolve))

  assert.equal(reports.length, 3)
  assert.ok(reports.includes(coded))
  for (const report of reports.filter(report => report !== coded)) {
    assert.equal(report.code, 'PLT_COORDINATOR_UNAVAILABLE')
    assert.equal(report.cause, cause)
    assert.match(report.message, /^Background work failed: (bare|at once)/)
    assert.ok(report.message.length < 120)
  }
  assert.deepEqual(unhandled, [])
})

test('BackgroundWork: a name is free again after a failure, also of work that threw at once', async () => {
  const { background, reports } = setStage()
  const failure = new Error('failed')
  const works = { rejects: async () => { throw failure }, throws: () => { throw failure } }
  for (const [name, work] of Object.entries(works)) {
    const seen = reports.length
    background.start(name, work)
    await until(() => reports.length === seen + 1, 'the failure is reported')
    let isStarted = false
    await until(() => {
      background.start(name, async () => { isStarted = true })
      return isStarted
    }, `${name} starts again`, 2000)
  }
  await background.close()
})

test('BackgroundWork: work that starts work of its own name from its end is not lost to close', async () => {
  const { background } = setStage()
  const order: string[] = []
  background.start('a', async () => {
    background.start('b', async () => { order.push('b') })
    order.push('a')
  })
  await until(() => order.length === 2, 'both ran')
  await background.close()
  assert.deepEqual(order, ['a', 'b'])
})
