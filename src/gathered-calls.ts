import { CoordinatorError, isCoordinatorError } from './errors.ts'

/** One question that waits for its answer. */
interface Waiting<Q, A> {
  readonly question: Q
  readonly resolve: (answer: A) => void
  readonly reject: (error: unknown) => void
}

export interface GatheredCallsOptions<Q, A> {
  /** Sends questions in one round trip; answers come in their order, each with the error that befell it alone. */
  ask: (questions: Q[]) => Promise<(A | CoordinatorError)[]>
  /** Tells how many keys the script read for an answer, which is what its time goes by. */
  weigh: (answer: A) => number
}

// Questions of one call at most.
const maxQuestions = 32
// Pods that a script reads within about a millisecond.
const maxWeight = 50

/**
 * Asks at once when nothing is on its way, and otherwise gathers: what comes while a call is under way goes out together when it is
 * answered. A caller alone pays nothing for it, and a busy registry sends one call for all that wait.
 */
export class GatheredCalls<Q, A> {
  readonly #options: GatheredCallsOptions<Q, A>
  #waiting: Waiting<Q, A>[] = []
  #underWay = 0
  /** Pods per destination as seen lately: destinations on many pods go in smaller calls, or one call would hold up the store. */
  #weight = 1

  constructor (options: GatheredCallsOptions<Q, A>) {
    this.#options = options
  }

  ask (question: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ question, resolve, reject })
      if (this.#underWay === 0) this.#send()
    })
  }

  #send (): void {
    const size = Math.max(1, Math.min(maxQuestions, Math.floor(maxWeight / this.#weight)))
    while (this.#waiting.length > 0) {
      const call = this.#waiting.length <= size ? this.#waiting : this.#waiting.slice(0, size)
      this.#waiting = this.#waiting.length <= size ? [] : this.#waiting.slice(size)
      this.#underWay++
      this.#settle(call) // never rejects
    }
  }

  async #settle (call: Waiting<Q, A>[]): Promise<void> {
    try {
      const answers = await this.#options.ask(call.map(({ question }) => question))
      this.#underWay--
      if (this.#underWay === 0) this.#send()
      let weight = 0
      for (let i = 0; i < call.length; i++) {
        const waiting = call[i] as Waiting<Q, A>
        const answer = answers[i]
        if (answer === undefined || answer instanceof CoordinatorError) {
          waiting.reject(answer ?? new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', 'The script gave no answer'))
        } else {
          weight += this.#options.weigh(answer)
          waiting.resolve(answer)
        }
      }
      this.#weight = Math.max(1, this.#weight / 2, weight / call.length)
    } catch (error) {
      this.#underWay--
      for (const { reject } of call) reject(error)
      // What waited behind a store that is away has waited as long as a call may: it was never sent, and fails with it.
      if (isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')) {
        const behind = this.#waiting
        this.#waiting = []
        for (const { reject } of behind) reject(error)
      } else if (this.#underWay === 0) {
        this.#send()
      }
    }
  }
}
