import assert from 'node:assert/strict'
import test from 'node:test'
import { BindingCache, byMemberId, readingFlags } from '../src/binding-cache.ts'
import type { Binding, BindingCacheOptions, Reading } from '../src/binding-cache.ts'
import type { LivePod } from '../src/decisions.ts'
import { until } from './support/store.ts'

class Clock {
  ms = 1000
  readonly now = (): number => this.ms
}

function setCache (cache: BindingCacheOptions['cache'] = { ttlMs: 5000, max: 100 }, random = (): number => 0): { cache: BindingCache<string>, clock: Clock } {
  const clock = new Clock()
  return { cache: new BindingCache({ cache, random, now: clock.now }), clock }
}

function pod (memberId: string, given: Partial<LivePod> = {}): LivePod {
  return { memberId, address: `http://${memberId}`, load: 0, pending: 0, draining: false, remainingMs: 30_000, ...given }
}

function reading (destinationId: string): Reading<string> {
  return { destinationId, joinKey: `0${destinationId}`, isStale: false, answer: null }
}

/** Keeps a binding that was read just now. */
function keep (cache: BindingCache<string>, clock: Clock, destinationId: string, ...live: LivePod[]): Binding {
  return cache.keep(reading(destinationId), live, clock.ms)
}

/** lru-cache remembers its clock's answer for a millisecond of real time. */
async function untilGone (cache: BindingCache<string>, destinationId: string): Promise<void> {
  await until(() => cache.get(destinationId) === undefined, `the binding of ${destinationId} has ended`)
}

async function staysFor20Looks (cache: BindingCache<string>, destinationId: string): Promise<void> {
  for (let look = 0; look < 20; look++) {
    assert.ok(cache.get(destinationId), `look ${look}`)
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

test('BindingCache: a binding is found until the ttl has passed since its read was sent', async () => {
  const { cache, clock } = setCache({ ttlMs: 500, max: 10 })
  assert.equal(cache.get('d'), undefined)

  const binding = keep(cache, clock, 'd', pod('a'))
  assert.equal(cache.get('d'), binding)
  assert.equal(cache.get('e'), undefined)
  clock.ms += 499
  await staysFor20Looks(cache, 'd')
  clock.ms += 2
  await untilGone(cache, 'd')
})

test('BindingCache: the time a reply was under way counts: life = sent + min(ttl, remaining)', async () => {
  const { cache, clock } = setCache({ ttlMs: 500, max: 10 })
  const sentAt = clock.ms
  clock.ms += 300
  cache.keep(reading('d'), [pod('a')], sentAt)
  clock.ms = sentAt + 499
  await staysFor20Looks(cache, 'd')
  clock.ms = sentAt + 501
  await untilGone(cache, 'd')
})

test('BindingCache: the pod whose record ends first ends the binding', async () => {
  const { cache, clock } = setCache()
  keep(cache, clock, 'd', pod('a', { remainingMs: 20_000 }), pod('b', { remainingMs: 200 }), pod('c', { remainingMs: Infinity }))
  clock.ms += 199
  await staysFor20Looks(cache, 'd')
  clock.ms += 2
  await untilGone(cache, 'd')
})

test('BindingCache: a record that never expires leaves the ttl to decide', async () => {
  const { cache, clock } = setCache({ ttlMs: 500, max: 10 })
  keep(cache, clock, 'd', pod('a', { remainingMs: Infinity }))
  assert.ok(cache.get('d'))
  clock.ms += 501
  await untilGone(cache, 'd')
})

test('BindingCache: what has ended by the time it arrives is not kept, but answered', () => {
  const { cache, clock } = setCache({ ttlMs: 500, max: 10 })
  const sentAt = clock.ms
  clock.ms += 500
  assert.deepEqual(cache.keep(reading('late'), [pod('a')], sentAt).choices.map(({ memberId }) => memberId), ['a'])
  assert.equal(cache.get('late'), undefined)
  keep(cache, clock, 'ending', pod('a', { remainingMs: 0 }))
  assert.equal(cache.get('ending'), undefined)
})

test('BindingCache: a ttl with a fraction works', async () => {
  const { cache, clock } = setCache({ ttlMs: 0.5, max: 10 })
  keep(cache, clock, 'd', pod('a'))
  assert.ok(cache.get('d'))
  clock.ms += 1
  await untilGone(cache, 'd')
})

test('BindingCache: without a cache nothing is kept, and reads are joined all the same (G40)', () => {
  const { cache, clock } = setCache(null)
  assert.deepEqual(keep(cache, clock, 'd', pod('a')).choices.map(({ memberId }) => memberId), ['a'])
  assert.equal(cache.get('d'), undefined)
  const started = cache.startReading('d', '0', () => new Promise(() => {}))
  assert.equal(cache.findReading('d', '0'), started)
  cache.evict('d')
  cache.clear()
})

test('BindingCache: the least recently used of more than max leaves', () => {
  const { cache, clock } = setCache({ ttlMs: 5000, max: 2 })
  keep(cache, clock, 'a', pod('p'))
  keep(cache, clock, 'b', pod('p'))
  cache.get('a')
  keep(cache, clock, 'c', pod('p'))
  assert.deepEqual(['a', 'b', 'c'].map(id => cache.get(id) !== undefined), [true, false, true])
})

test('BindingCache: choices are sorted by memberId, draining pods only where there is no other', () => {
  const { cache, clock } = setCache()
  const draining = { draining: true }
  const choices = (binding: Binding): string => binding.choices.map(({ memberId }) => memberId).join()
  assert.equal(choices(keep(cache, clock, 'd', pod('c'), pod('a'), pod('B'))), 'B,a,c')
  assert.equal(choices(keep(cache, clock, 'd', pod('c', draining), pod('b'), pod('a', draining))), 'b')
  assert.equal(choices(keep(cache, clock, 'd', pod('c', draining), pod('a', draining))), 'a,c')
})

test('BindingCache: the rotation of a fanned-out destination goes on through evictions and later bindings', () => {
  const { cache, clock } = setCache(undefined, () => 0.5)
  const first = keep(cache, clock, 'd', pod('a'), pod('b'))
  assert.equal(first.rotation.turn, 2 ** 19, 'it starts where chance says')
  first.rotation.turn++
  cache.evict('d')
  cache.clear()
  assert.equal(keep(cache, clock, 'd', pod('a'), pod('b'), pod('c')).rotation, first.rotation)
  assert.notEqual(keep(cache, clock, 'e', pod('a'), pod('b')).rotation, first.rotation)
})

test('BindingCache: rotations are bounded as bindings are', () => {
  const { cache, clock } = setCache({ ttlMs: 5000, max: 2 })
  const first = keep(cache, clock, 'd', pod('a'), pod('b')).rotation
  for (const id of ['e', 'f']) keep(cache, clock, id, pod('a'), pod('b'))
  assert.notEqual(keep(cache, clock, 'd', pod('a'), pod('b')).rotation, first)
})

test('byMemberId: orders by code units, as every registry does', () => {
  const sorted = ['b', 'a', 'B', '10', '9', 'é', 'a'].map(memberId => ({ memberId })).sort(byMemberId)
  assert.deepEqual(sorted.map(({ memberId }) => memberId), ['10', '9', 'B', 'a', 'a', 'b', 'é'])
})

test('BindingCache: flags and id of a read make one key, however they look alike', () => {
  const { cache } = setCache()
  const never = (): Promise<string> => new Promise(() => {})
  const ids = ['', '0', '00', '1', '01', '10', '0d', 'd', '1d']
  const readings = new Map(ids.flatMap(id => readingFlags.map(flags => [`${flags} ${id}`, cache.startReading(id, flags, never)])))
  assert.equal(new Set(readings.values()).size, ids.length * readingFlags.length)
  for (const id of ids) for (const flags of readingFlags) assert.equal(cache.findReading(id, flags), readings.get(`${flags} ${id}`))
  cache.evict('0')
  const stale = [...readings].filter(([, { isStale }]) => isStale).map(([name]) => name)
  assert.deepEqual(stale, readingFlags.map(flags => `${flags} 0`))
})
