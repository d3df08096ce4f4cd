import { CoordinatorError, describe } from './errors.ts'

/** Asks the application for its load, and always has an answer: the heartbeat must go out whatever `getLoad` does. */
export class LoadSource {
  readonly #getLoad: () => unknown
  readonly #timeoutMs: number
  readonly #report: (error: CoordinatorError) => void
  #last = NaN
  #asking: Promise<number> | undefined

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
    this.#asking ??= this.#ask().finally(() => { this.#asking = undefined })
    let timer: NodeJS.Timeout | undefined
    const limit = new Promise<void>(resolve => { timer = setTimeout(resolve, this.#timeoutMs) })
    const load = await Promise.race([this.#asking, limit])
    clearTimeout(timer)
    if (typeof load === 'number') return load
    this.#report(new CoordinatorError('PLT_COORDINATOR_LOAD_UNKNOWN', `getLoad took longer than ${this.#timeoutMs} ms`))
    return this.#last
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
