/**
 * Hands out the turns of a registry's claims. A read that might have to claim takes a turn before it knows, and gives it back when the
 * destination turns out to be bound: the next one uses it. Were it lost instead, two destinations asked for in alternation could
 * all land on one pod.
 */
export class ClaimTurns {
  #next: number
  readonly #returned: number[] = []

  constructor (random: () => number) {
    this.#next = Math.floor(random() * 2 ** 20)
  }

  take (): number {
    return this.#returned.pop() ?? this.#next++
  }

  /** Keeps a turn that was not used; the lowest is taken first. */
  giveBack (turn: number): void {
    let at = this.#returned.length
    while (at > 0 && (this.#returned[at - 1] as number) < turn) at--
    this.#returned.splice(at, 0, turn)
  }
}
