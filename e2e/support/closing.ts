import type { TestContext } from 'node:test'

type Close = () => unknown

interface Closing {
  readonly all: Close[]
  readonly errors: unknown[]
  /** Another hook, behind those of the test's own services, throws what was collected. */
  isToldLater: boolean
}

const closings = new WeakMap<TestContext, Closing>()

/**
 * Has things closed after the test, the last made first, each of them whatever became of the others: a process that crashed must not save
 * the rest from being killed. Their errors fail the test. Ask for the first before a store of the test's own is started: node:test runs
 * its own clean-ups first in, first out, and the processes have to go before their store.
 */
export function atClose (t: TestContext, close: Close): void {
  const known = closings.get(t)
  if (known !== undefined) {
    known.all.push(close)
    return
  }
  const closing: Closing = { all: [close], errors: [], isToldLater: false }
  closings.set(t, closing)
  t.after(async () => {
    for (let next = closing.all.pop(); next !== undefined; next = closing.all.pop()) {
      try {
        await next()
      } catch (error) {
        closing.errors.push(error)
      }
    }
    if (!closing.isToldLater) tell(closing)
  })
}

/**
 * Has the errors of the closing thrown here in the row of node's clean-ups, behind those that were asked for before: node runs none of
 * those that come after one that throws, and a service of the test's own would stay, and keep the file from ending.
 */
export function tellErrorsHere (t: TestContext): void {
  const closing = closings.get(t)
  if (closing === undefined) return
  closing.isToldLater = true
  t.after(() => tell(closing))
}

function tell ({ errors }: Closing): void {
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('\n'))
}

/** Whether the test has failed so far; asked in its clean-up. */
export function hasFailed (t: TestContext): boolean {
  return (t as { passed?: boolean }).passed === false
}
