import type { TestContext } from 'node:test'

type Close = () => unknown
const closings = new WeakMap<TestContext, Close[]>()

/** Has things closed after the test, the last made first: node:test runs its own clean-ups first in, first out. */
export function atEnd (t: TestContext, close: Close): void {
  const known = closings.get(t)
  if (known !== undefined) {
    known.push(close)
    return
  }
  const all = [close]
  closings.set(t, all)
  t.after(async () => {
    while (all.length > 0) await all.pop()?.()
  })
}
