import assert from 'node:assert/strict'
import { isCoordinatorError } from '../../src/index.ts'
import type { CoordinatorError, CoordinatorErrorCode, Member, Registry } from '../../src/index.ts'

/** What a loaded machine may add to a stated bound. A call without any bound would wait for ever, or for iovalkey's own ten seconds. */
export const marginMs = 5000

export type Calls = Record<string, () => Promise<unknown>>

/** Every asynchronous method of a registry that asks Valkey; `memberIndex` has to be on. */
export function everyRegistryCall (registry: Registry, id = 'tenant-1'): Calls {
  return {
    resolveDestination: () => registry.resolveDestination(`${id}-read`),
    'resolveDestination with claimOnMiss': () => registry.resolveDestination(`${id}-claim`, { claimOnMiss: true }),
    'resolveDestination with reassignOrphans': () => registry.resolveDestination(`${id}-reassign`, { reassignOrphans: true }),
    resolveLock: () => registry.resolveLock('lock-1'),
    listLiveMembers: () => registry.listLiveMembers(),
    pickMember: () => registry.pickMember({ destinationId: id }),
    addPodToDestination: () => registry.addPodToDestination(id, 'pod-1'),
    removePodFromDestination: () => registry.removePodFromDestination(id, 'pod-1'),
    hasBinding: () => registry.hasBinding(id),
    readBinding: () => registry.readBinding(id),
    deregisterDestination: () => registry.deregisterDestination(id),
    listOwned: () => registry.listOwned('pod-1')
  }
}

/** Every asynchronous method of a member but heartbeat() and deregister(), which have a test of their own; `memberIndex` has to be on. */
export function everyMemberCall (member: Member, id = 'tenant-1'): Calls {
  return {
    register: () => member.register(),
    setDraining: () => member.setDraining(true),
    addToDestination: () => member.addToDestination(id),
    removeFromDestination: () => member.removeFromDestination(id),
    registerLock: () => member.registerLock('lock-1', id),
    unregisterLock: () => member.unregisterLock('lock-1'),
    listPeerLoad: () => member.listPeerLoad(),
    listOwned: () => member.listOwned()
  }
}

/** The names of the calls that change something: their failure leaves the outcome unknown. */
export const writes = new Set([
  'resolveDestination with claimOnMiss', 'resolveDestination with reassignOrphans', 'addPodToDestination', 'removePodFromDestination',
  'deregisterDestination', 'register', 'setDraining', 'addToDestination', 'removeFromDestination', 'registerLock', 'unregisterLock'
])

/** Waits for work that has to settle within a bound (plus the margin of a loaded machine). */
export async function within<T> (boundMs: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle within ${boundMs} + ${marginMs} ms`)), boundMs + marginMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for work that has to reject with a coded error within a bound, and returns the error. */
export async function failure (boundMs: number, what: string, work: Promise<unknown>, code: CoordinatorErrorCode): Promise<CoordinatorError> {
  const outcome = await within(boundMs, what, work.then(value => ({ value }), (error: unknown) => ({ error })))
  assert.ok('error' in outcome, `${what} succeeded with ${JSON.stringify('value' in outcome && outcome.value)}, where ${code} was due`)
  const { error } = outcome
  assert.ok(isCoordinatorError(error), `${what} rejected with ${String(error)}, where ${code} was due`)
  assert.equal(error.code, code, `${what}: ${error.message}`)
  return error
}

/** Makes each of the calls at once: all have to reject with the code within the bound. Returns the errors by name. */
export async function allFail (boundMs: number, calls: Calls, code: CoordinatorErrorCode): Promise<Record<string, CoordinatorError>> {
  const failures = Object.entries(calls).map(async ([name, call]) => [name, await failure(boundMs, name, call(), code)] as const)
  return Object.fromEntries(await Promise.all(failures))
}
