import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Registry } from '../../src/index.ts'
import type { RegistryOptions, ResolvedDestination, ResolveOptions } from '../../src/index.ts'

/** Options that survive the way to another process. */
export type PlainRegistryOptions = Pick<RegistryOptions, 'keyPrefix' | 'memberIndex'> & { redis: string, cache?: false, strategy?: 'round-robin' | 'least-loaded' | 'random' }

/** One process with several registries. */
export interface RegistryProcess {
  /** Asks every registry in it `times` times at once; all answers in one list. */
  resolve (destinationId: string, options: ResolveOptions, times: number): Promise<(ResolvedDestination | null)[]>
}

interface Order {
  id: number
  destinationId: string
  options: ResolveOptions
  times: number
}

type Reply = { id: number, answers: (ResolvedDestination | null)[] } | { id: number, error: string }

/** Starts a process with registries, which ends with the test. */
export async function startRegistryProcess (t: TestContext, options: PlainRegistryOptions, registryCount: number): Promise<RegistryProcess> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify({ options, registryCount })], { execArgv: ['--import', 'tsx'] })
  const ended = once(child, 'exit')
  const pending = new Map<number, { resolve: (answers: (ResolvedDestination | null)[]) => void, reject: (error: Error) => void }>()
  let lastId = 0
  child.on('message', (reply: Reply | 'ready') => {
    if (reply === 'ready') return
    const waiter = pending.get(reply.id)
    pending.delete(reply.id)
    if ('error' in reply) waiter?.reject(new Error(reply.error))
    else waiter?.resolve(reply.answers)
  })
  child.on('exit', code => {
    for (const { reject } of pending.values()) reject(new Error(`The registry process ended with ${code}`))
  })
  t.after(async () => {
    if (child.connected) child.disconnect()
    await ended
  })
  await Promise.race([once(child, 'message'), ended.then(() => { throw new Error('The registry process did not start') })])
  return {
    resolve: async (destinationId, options, times) => await new Promise((resolve, reject) => {
      const id = ++lastId
      pending.set(id, { resolve, reject })
      child.send({ id, destinationId, options, times } satisfies Order)
    })
  }
}

async function runRegistries (): Promise<void> {
  const { options, registryCount } = JSON.parse(process.argv[2] as string) as { options: RegistryOptions, registryCount: number }
  const registries = Array.from({ length: registryCount }, () => new Registry(options))
  process.on('message', ({ id, destinationId, options, times }: Order) => {
    const calls = registries.flatMap(registry => Array.from({ length: times }, () => registry.resolveDestination(destinationId, options)))
    Promise.all(calls).then(
      answers => process.send?.({ id, answers } satisfies Reply),
      (error: unknown) => process.send?.({ id, error: String(error) } satisfies Reply)
    )
  })
  process.once('disconnect', () => { Promise.all(registries.map(registry => registry.close())).catch(() => { process.exitCode = 1 }) })
  // Connected and their features checked, so that a race starts at once.
  await Promise.all(registries.map(registry => registry.listLiveMembers()))
  process.send?.('ready')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runRegistries()
