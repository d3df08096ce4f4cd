import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Bench } from '../bench.ts'
import type { CpuSource } from '../cpu.ts'

interface Answer {
  readonly id: number
  readonly answer?: unknown
  readonly error?: string
}

interface Waiting {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

const stopDeadlineMs = 10_000

/** A process of its own for a part of a bench, which answers questions over IPC (see answer.ts). Ends with its group, or with us. */
export class Forked implements CpuSource {
  readonly processCount = 1
  readonly #name: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #isStopping = false

  /**
   * @param name a file of this folder
   * @param runtimeOptions options of the runtime, such as --expose-gc
   */
  constructor (bench: Bench, name: string, runtimeOptions: readonly string[] = []) {
    this.#name = name
    const file = new URL(`${name}.ts`, import.meta.url)
    this.#child = fork(file, { execArgv: ['--import', import.meta.resolve('tsx'), ...runtimeOptions], serialization: 'advanced' })
    this.#child.on('message', ({ id, answer, error }: Answer) => {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error === undefined) waiting?.resolve(answer)
      else waiting?.reject(new Error(`${name}: ${error}`))
    })
    this.#child.on('error', error => this.#fail(error))
    this.#child.on('exit', (code, signal) => this.#fail(new Error(`${name} ended with ${signal ?? code}`)))
    bench.atEnd(() => this.stop())
  }

  /** Asks the process to do something, and waits for what comes of it. */
  async ask<T> (question: string, details?: unknown): Promise<T> {
    return await new Promise<T>((resolve, reject) => {
      const id = ++this.#lastId
      this.#waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject })
      this.#child.send({ id, question, details }, error => {
        if (error !== null) this.#fail(error)
      })
    })
  }

  async readMicroseconds (): Promise<number> {
    return await this.ask<number>('cpu')
  }

  /** Lets the process end by itself; kills it when it does not. */
  async stop (): Promise<void> {
    if (this.#isStopping || this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#isStopping = true
    const gone = new Promise<void>(resolve => this.#child.once('exit', () => resolve()))
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopDeadlineMs)
    // What the process still does has its answer first: it closes when the channel does.
    this.#child.disconnect()
    await gone
    clearTimeout(timer)
  }

  #fail (error: Error): void {
    if (!this.#isStopping && this.#waiting.size === 0) console.error(`bench: ${this.#name}: ${error.message}`)
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

/** Several processes as one client. */
export class ForkedGroup implements CpuSource {
  readonly all: readonly Forked[]

  constructor (all: readonly Forked[]) {
    this.all = all
  }

  get processCount (): number {
    return this.all.length
  }

  async readMicroseconds (): Promise<number> {
    const each = await Promise.all(this.all.map(forked => forked.readMicroseconds()))
    return each.reduce((sum, us) => sum + us, 0)
  }

  /** Asks all of them at once. */
  async ask<T> (question: string, details: (at: number) => unknown): Promise<T[]> {
    return await Promise.all(this.all.map((forked, at) => forked.ask<T>(question, details(at))))
  }
}
