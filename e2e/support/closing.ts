import type { TestContext } from 'node:test'

type Close = () => unknown
const closings = new WeakMap<TestContext, Close[]>()

/**
 * Has things closed after the test, the last made first, each of them whatever became of the others: a process that crashed must not save
 * the rest from being killed. Their errors fail the test. Ask for the first before a store of the test's own is started: node:test runs
 * its own clean-ups first in, first out, and the processes have to go before their store.
 */
export function atClose (t: TestContext, close: Close): void {
  const known = closings.get(t)
  if (known !== undefined) {
    known.push(close)
    return
  }
  const all = [close]
  closings.set(t, all)
  t.after(async () => {
    const errors: unknown[] = []
    for (let next = all.pop(); next !== undefined; next = all.pop()) {
      try {
        await next()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length === 1) throw errors[0]
    if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('\n'))
  })
}

/** Whether the test has failed so far; asked in its clean-up. */
export function hasFailed (t: TestContext): boolean {
  return (t as { passed?: boolean }).passed === false
}
