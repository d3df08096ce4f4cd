import { CoordinatorError } from './errors.ts'

/** Work that no caller waits for: at most one of a name at a time, its failure reported, awaited before the connection closes. */
export class BackgroundWork {
  readonly #report: (error: CoordinatorError) => void
  readonly #running = new Map<string, Promise<void>>()
  #isClosed = false

  constructor (report: (error: CoordinatorError) => void) {
    this.#report = report
  }

  /** Starts the work, unless some of that name is still running or `close()` was called. */
  start (name: string, work: () => Promise<unknown>): void {
    if (this.#isClosed || this.#running.has(name)) return
    this.#running.set(name, this.#run(name, work))
  }

  /** Lets nothing new start and waits for what runs. */
  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#running.values())
  }

  async #run (name: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await null // what throws at once must not be forgotten before it is remembered
      await work()
    } catch (error) {
      this.#report(error instanceof CoordinatorError
        ? error
        : new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `Background work failed: ${name.slice(0, 64)}`, error))
    } finally {
      this.#running.delete(name)
    }
  }
}
