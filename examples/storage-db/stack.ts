// The processes of the example on this machine: pods and a coordinator, each plain node on what was compiled, on ports of their own.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

type Settings = Readonly<Record<string, string | number>>

/** One process. */
interface Running {
  readonly child: ChildProcess
  readonly address: string
  /** Resolves to how it ended: an exit code or the name of a signal. */
  readonly ended: Promise<number | string>
}

export class Stack {
  readonly #env: NodeJS.ProcessEnv
  /** Every process from its first moment, ready or not, to its end. */
  readonly #children = new Map<ChildProcess, Promise<number | string>>()
  readonly #pods = new Map<string, Running>()
  #coordinator: Running | undefined

  /** @param settings of every process, as environment variables */
  constructor (settings: Settings) {
    this.#env = { ...process.env, ...toEnvironment(settings) }
  }

  /** URL of the coordinator. */
  get url (): string {
    if (this.#coordinator === undefined) throw new Error('The coordinator has not been started')
    return this.#coordinator.address
  }

  get memberIds (): string[] {
    return [...this.#pods.keys()].sort()
  }

  async start (memberIds: readonly string[]): Promise<void> {
    const [coordinator] = await Promise.all([this.#run('coordinator', {}), ...memberIds.map(memberId => this.startPod(memberId))])
    this.#coordinator = coordinator
  }

  /** Resolves when the pod is registered and listens. */
  async startPod (memberId: string): Promise<void> {
    this.#pods.set(memberId, await this.#run('pod', { MEMBER_ID: memberId }))
  }

  /** Sends a signal to a pod and resolves to how it ended. */
  async endPod (memberId: string, signal: NodeJS.Signals): Promise<number | string> {
    const pod = this.#pods.get(memberId)
    if (pod === undefined) throw new Error(`There is no pod ${memberId}`)
    this.#pods.delete(memberId)
    pod.child.kill(signal)
    return await pod.ended
  }

  /** Ends all processes gracefully, and those that are still there after a while in any way. */
  async stop (): Promise<void> {
    await Promise.all([...this.#children].map(async ([child, ended]) => {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 8000)
      await ended
      clearTimeout(timer)
    }))
  }

  async #run (entry: 'pod' | 'coordinator', settings: Settings): Promise<Running> {
    // With a channel: a process whose parent is gone, in whatever way, stops by itself.
    const child = spawn(process.execPath, [fileURLToPath(new URL(`./dist/${entry}.js`, import.meta.url))], {
      env: { ...this.#env, PORT: '0', ...toEnvironment(settings) }, stdio: ['ignore', 'pipe', 'inherit', 'ipc']
    })
    const ended = once(child, 'exit').then(([code, signal]) => {
      this.#children.delete(child)
      return (signal ?? code) as number | string
    })
    this.#children.set(child, ended)
    const lines = createInterface({ input: child.stdout as Readable })
    const ready = once(lines, 'line').then(([line]) => JSON.parse(line) as { address: string })
    const { address } = await Promise.race([ready, ended.then(end => { throw new Error(`A ${entry} ended (${end}) before it was ready`) })])
    return { child, address, ended }
  }
}

function toEnvironment (settings: Settings): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]))
}
