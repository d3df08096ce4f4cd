import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError } from '../src/index.ts'
import type { Registry } from '../src/index.ts'
import { ask, moveUnheard, setPods } from './support/cache-scene.ts'
import { startOwnStore } from './support/own-store.ts'
import { until } from './support/store.ts'

const isUnavailable = (error: unknown): boolean => isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')

const writes: ((registry: Registry, id: string) => Promise<unknown>)[] = [
  (registry, id) => registry.addPodToDestination(id, 'pod-2'),
  (registry, id) => registry.removePodFromDestination(id, 'pod-1'),
  (registry, id) => registry.deregisterDestination(id)
]

for (const areKnown of [true, false]) {
  test(`cache: own writes evict when they fail too, since they may happen later, with scripts that the server ${areKnown ? 'knows' : 'does not know yet'}`, async t => {
    const store = await startOwnStore(t)
    const scene = await setPods(t, store.url)
    const registry = scene.registry({ cache: { ttl: 600_000 }, storeTimeout: 300 })
    if (areKnown) for (const write of writes) await write(registry, 'warm')
    for (const [i] of writes.entries()) {
      await moveUnheard(scene, `d${i}`, 'pod-1')
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
  const scene = await setPods(t, store.url)
  await moveUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 600_000 }, storeTimeout: 300 })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  await store.kill()

  assert.equal(await ask(registry, 'd'), 'pod-1')
  await assert.rejects(ask(registry, 'other'), isUnavailable)
})
