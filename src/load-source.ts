import { CoordinatorError, describe } from './errors.ts'

/** Asks the application for its load, and always has an answer: the heartbeat must go out whatever `getLoad` does. */
export class LoadSource {
  readonly #getLoad: () => unknown
  readonly #timeoutMs: number
  readonly #report: (error: CoordinatorError) => void
  #last = NaN
  #asking: Promise<number> | undefined
  /** True while a call that took too long still runs: the beats do not wait for it again. */
  #isLate = false
  readonly #waiting = new Set<() => void>()

  constructor (getLoad: () => unknown, timeoutMs: number, report: (error: CoordinatorError) => void) {
    this.#getLoad = getLoad
    this.#timeoutMs = timeoutMs
    this.#report = report
  }

  /** The load last known; NaN when there is none. */
  get last (): number {
    return this.#last
  }

  /** The load now: the last one known when `getLoad` throws or hangs, NaN when it returned no finite number or never a first one. */
  async read (): Promise<number> {
    // While one call hangs no second is made: it would hang as well, and pile up.
    if (this.#isLate) return this.#last
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
      this.#isLate = false
    })
    let stop = (): void => {}
    const stopped = new Promise<void>(resolve => { stop = resolve })
    const timer = setTimeout(() => {
      this.#isLate = true
      stop()
    }, this.#timeoutMs)
    this.#waiting.add(stop)
    const load = await Promise.race([this.#asking, stopped])
    clearTimeout(timer)
    this.#waiting.delete(stop)
    if (load === undefined && this.#isLate) this.#report(new CoordinatorError('PLT_COORDINATOR_LOAD_UNKNOWN', `getLoad took longer than ${this.#timeoutMs} ms`))
    return load ?? this.#last
  }

  /** Ends the wait of every `read()` under way, which then answers with the load last known. */
  stopWaiting (): void {
    for (const stop of this.#waiting) stop()
  }

  async #ask (): Promise<number> {
    try {
      const load = await this.#getLoad()
      this.#last = typeof load === 'number' && Number.isFinite(load) ? load : NaN
      if (Number.isNaN(this.#last)) this.#report(new CoordinatorError('PLT_COORDINATOR_LOAD_UNKNOWN', `Expected getLoad to return a finite number, got ${describe(load)}`))
    } catch (error) {
      this.#report(new CoordinatorError('PLT_COORDINATOR_LOAD_UNKNOWN', 'getLoad threw an error (see cause)', error))
    }
    return this.#last
  }
}
