import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import type { Registry } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const isUnavailable = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')

/** Binds a destination with plain commands, which no registry hears of. */
async function bindUnheard (scene: Scene, destinationId: string, memberId: string): Promise<void> {
  const key = scene.key('destination', destinationId)
  await scene.raw.multi().del(key).sadd(key, memberId).exec()
}

const ask = async (registry: Registry, destinationId: string): Promise<string | undefined> => (await registry.resolveDestination(destinationId))?.memberId

const writes: ((registry: Registry, id: string) => Promise<unknown>)[] = [
  (registry, id) => registry.addPodToDestination(id, 'pod-2'),
  (registry, id) => registry.removePodFromDestination(id, 'pod-1'),
  (registry, id) => registry.deregisterDestination(id)
]

for (const areKnown of [true, false]) {
  test(`cache: own writes evict when they fail too, since they may happen later, with scripts that the server ${areKnown ? 'knows' : 'does not know yet'}`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url)
    for (const memberId of ['pod-1', 'pod-2']) await scene.rawMember(memberId, {}, 600)
    const registry = scene.registry({ cache: { ttl: 600_000 }, storeTimeout: 300 })
    if (areKnown) for (const write of writes) await write(registry, 'warm')
    for (const [i] of writes.entries()) {
      await bindUnheard(scene, `d${i}`, 'pod-1')
      assert.equal(await ask(registry, `d${i}`), 'pod-1')
    }

    store.freeze()
    await Promise.all(writes.map((write, i) => assert.rejects(write(registry, `d${i}`), error => isUnavailable(error) && /outcome/.test((error as Error).message))))
    for (const [i] of writes.entries()) await assert.rejects(ask(registry, `d${i}`), isUnavailable)
    store.thaw()
    await until(async () => await ask(registry, 'd0').catch(() => undefined), 'the store answers')
    for (const [i] of writes.entries()) await ask(registry, `d${i}`)
    await scene.raw.ping()
    await registry.listLiveMembers() // whatever was under way has happened by now

    for (const [i] of writes.entries()) {
      const answers = new Set([await ask(registry, `d${i}`), await ask(registry, `d${i}`)])
      answers.delete(undefined)
      assert.deepEqual([...answers].sort(), await scene.pods(`d${i}`), `d${i}`)
    }
  })
}

test('cache: an entry is answered while the store is away', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.rawMember('pod-1', {}, 600)
  await bindUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 600_000 }, storeTimeout: 300 })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await store.kill()

  assert.equal(await ask(registry, 'd'), 'pod-1')
  await assert.rejects(ask(registry, 'other'), isUnavailable)
})
