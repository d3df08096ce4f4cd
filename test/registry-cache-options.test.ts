import assert from 'node:assert/strict'
import test from 'node:test'
import { isCoordinatorError, Registry } from '../src/index.ts'
import type { CacheOptions } from '../src/index.ts'
import { ask, moveUnheard, setPods } from './support/cache-scene.ts'
import { until } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }

test('cache: it keeps 5 s and 10,000 bindings by default', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  const brief = scene.registry()
  const wide = scene.registry({ cache: { ttl: 600_000 } })
  const readAt = performance.now()
  for (const registry of [brief, wide]) assert.equal(await ask(registry, 'd'), 'pod-1')
  await moveUnheard(scene, 'd', 'pod-2')

  const claim = async (from: number, to: number): Promise<void> => {
    await Promise.all(Array.from({ length: to - from }, (_, i) => wide.resolveDestination(`d${from + i}`, both)))
  }
  for (let from = 0; from < 9_900; from += 900) await claim(from, from + 900)
  await claim(9_900, 9_999)
  // The 10,000th entry costs none; the next one costs the oldest, which is now d0.
  assert.equal(await ask(wide, 'd'), 'pod-1')
  const owner = await ask(wide, 'd1')
  await moveUnheard(scene, 'd0', 'nobody')
  await moveUnheard(scene, 'd1', 'nobody')
  await claim(9_999, 10_000)
  assert.equal(await ask(wide, 'd0'), undefined)
  assert.equal(await ask(wide, 'd1'), owner)

  await until(async () => await ask(brief, 'd') === 'pod-2', 'the default ttl is over')
  const ageMs = performance.now() - readAt
  assert.ok(ageMs >= 5_000, `over after ${ageMs} ms`)
})

for (const cache of [false, { ttl: 0 }, { max: 0 }, { ttl: 0, max: 0 }] as const) {
  test(`cache: ${JSON.stringify(cache)} turns it off (G40)`, async t => {
    const scene = await setPods(t)
    await moveUnheard(scene, 'd', 'pod-1')
    const registry = scene.registry({ cache })
    assert.equal(await ask(registry, 'd'), 'pod-1')
    await moveUnheard(scene, 'd', 'pod-2')
    assert.equal(await ask(registry, 'd'), 'pod-2')
    assert.equal((await registry.resolveDestination('new', both))?.reassigned, false)
  })
}

const refused: unknown[] = [
  true, 5000, 'off', null, { ttl: -1 }, { ttl: NaN }, { ttl: Infinity }, { ttl: '5000' }, { ttl: null },
  { max: -1 }, { max: NaN }, { max: Infinity }, { max: 1.5 }, { max: '10' }, { max: 2 ** 40 }
]

test('cache: a ttl or max that is negative, NaN, unbounded or no number is refused at construction (G40)', () => {
  for (const cache of refused) {
    assert.throws(() => new Registry({ redis: 'redis://127.0.0.1:1', cache: cache as CacheOptions }), error =>
      isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION') && /^Expected cache(\.ttl|\.max)? to be /.test(error.message), JSON.stringify(cache))
  }
})

test('cache: a ttl that is a fraction of a millisecond, or has one, is taken (G40)', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  for (const ttl of [0.5, 1.5, 60_000.25]) assert.equal(await ask(scene.registry({ cache: { ttl } }), 'd'), 'pod-1')
})

test('cache: flags that are no booleans are refused on a hit too, as on a miss (G40)', async t => {
  const scene = await setPods(t)
  await moveUnheard(scene, 'd', 'pod-1')
  const registry = scene.registry({ cache: { ttl: 60_000 } })
  assert.equal(await ask(registry, 'd'), 'pod-1')
  for (const id of ['d', 'other']) {
    for (const options of [null, 'claimOnMiss', { claimOnMiss: 'yes' }, { reassignOrphans: 1 }, { claimOnMiss: null }]) {
      await assert.rejects(registry.resolveDestination(id, options as never), { code: 'PLT_COORDINATOR_INVALID_OPTION' }, `${id} ${JSON.stringify(options)}`)
    }
  }
  assert.equal(await ask(registry, 'd'), 'pod-1')
})
