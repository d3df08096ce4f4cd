/** Runs tasks of one name one after another, and those of different names side by side. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T> (name: string, task: () => Promise<T>): Promise<T> {
    const earlier = this.#last.get(name)
    const own = earlier === undefined ? task() : earlier.then(task, task)
    this.#last.set(name, own)
    try {
      return await own
    } finally {
      if (this.#last.get(name) === own) this.#last.delete(name)
    }
  }
}
