import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The parent's view of a pod: it starts the process and ends it in one of three ways. */
export class PodProcess {
  readonly memberId: string
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  state: 'running' | 'killed' | 'draining' | 'left' = 'running'
  address = ''

  /** @param onCrash called when the process ends although nobody asked for it */
  constructor (memberId: string, keyPrefix: string, onCrash: (error: Error) => void) {
    this.memberId = memberId
    this.#child = fork(fileURLToPath(new URL('./pod.ts', import.meta.url)), [memberId, keyPrefix])
    this.#exited = once(this.#child, 'exit').then(([code, signal]) => {
      if (this.state === 'running') onCrash(new Error(`${memberId} ended by itself (${signal ?? `exit code ${code}`})`))
      this.state = this.state === 'draining' ? 'left' : 'killed'
    })
  }

  get pid (): number {
    return this.#child.pid!
  }

  /** Resolves when the pod is registered and listens. */
  async ready (signal: AbortSignal): Promise<void> {
    const [message] = await once(this.#child, 'message', { signal })
    this.address = message.address
  }

  /** As the kernel does when memory is short: the pod cannot say goodbye. */
  async kill (): Promise<void> {
    if (this.state === 'running' || this.state === 'draining') this.state = 'killed'
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** As Kubernetes does: the pod moves its destinations and exits. */
  async leave (): Promise<void> {
    this.state = 'draining'
    this.#child.kill('SIGTERM')
    await this.#exited
  }
}
