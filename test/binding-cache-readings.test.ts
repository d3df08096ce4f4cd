import assert from 'node:assert/strict'
import test from 'node:test'
import { BindingCache } from '../src/binding-cache.ts'
import type { Reading } from '../src/binding-cache.ts'
import type { LivePod } from '../src/decisions.ts'

const now = (): number => 1000
const live: LivePod[] = [{ memberId: 'a', address: 'http://a', load: 0, pending: 0, draining: false, remainingMs: 30_000 }]

function setCache (): BindingCache<string> {
  return new BindingCache({ cache: { ttlMs: 5000, max: 100 }, random: () => 0, now })
}

/** A read that is answered, or fails, when the test says so, and keeps its binding as the resolver does. */
function startRead (cache: BindingCache<string>, destinationId: string, flags = '0'): { reading: Reading<string>, answer: (text: string) => void, fail: (error: Error) => void } {
  let answer = (_text: string): void => {}
  let fail = (_error: Error): void => {}
  const reading = cache.startReading(destinationId, flags, async own => {
    const text = await new Promise<string>((resolve, reject) => {
      answer = resolve
      fail = reject
    })
    cache.keep(own, [...live], 1000)
    return text
  })
  return { reading, answer: text => answer(text), fail: error => fail(error) }
}

test('BindingCache: a read in flight is found by its flags and id until it is answered', async () => {
  const cache = setCache()
  const { reading, answer } = startRead(cache, 'd')
  assert.equal(cache.findReading('d', '0'), reading)
  for (const [id, flags] of [['d', '1'], ['d', '2'], ['d', '3'], ['e', '0']] as const) assert.equal(cache.findReading(id, flags), undefined)

  answer('found')
  assert.equal(await reading.answer, 'found')
  assert.equal(cache.findReading('d', '0'), undefined)
  assert.ok(cache.get('d'))
})

test('BindingCache: a read is announced before it is sent, so that nobody sends a second', () => {
  const cache = setCache()
  let seen: Reading<string> | undefined
  const reading = cache.startReading('d', '0', async own => {
    seen = cache.findReading('d', '0')
    assert.equal(own, seen)
    assert.equal(own.answer, null)
    return 'found'
  })
  assert.equal(seen, reading)
})

test('BindingCache: a read that fails is forgotten and its failure reaches who joined', async () => {
  const cache = setCache()
  const { reading, fail } = startRead(cache, 'd')
  const failure = new Error('away')
  const joined = cache.findReading('d', '0')?.answer
  fail(failure)
  await assert.rejects(Promise.resolve(joined), failure)
  await assert.rejects(Promise.resolve(reading.answer), failure)
  assert.equal(cache.findReading('d', '0'), undefined)
  assert.equal(cache.get('d'), undefined)
})

for (const flags of ['0', '1', '2', '3']) {
  test(`BindingCache: a read of flags ${flags} in flight while its id is evicted is answered, not cached, not joined (I5)`, async () => {
    const cache = setCache()
    const { reading, answer } = startRead(cache, 'd', flags)
    const other = startRead(cache, 'e', flags)

    cache.evict('d')

    assert.equal(reading.isStale, true)
    assert.equal(cache.findReading('d', flags), undefined)
    assert.equal(other.reading.isStale, false)
    assert.equal(cache.findReading('e', flags), other.reading)
    answer('old')
    assert.equal(await reading.answer, 'old', 'who waits for it still gets it')
    assert.equal(cache.get('d'), undefined)
  })
}

test('BindingCache: after an eviction a new read is joined and kept, and the stale one cannot push it out', async () => {
  const cache = setCache()
  const stale = startRead(cache, 'd')
  cache.evict('d')
  const fresh = startRead(cache, 'd')
  assert.equal(cache.findReading('d', '0'), fresh.reading)

  stale.answer('old')
  await stale.reading.answer
  assert.equal(cache.findReading('d', '0'), fresh.reading, 'the end of the stale read does not remove the fresh one')
  assert.equal(cache.get('d'), undefined)

  fresh.answer('new')
  await fresh.reading.answer
  assert.ok(cache.get('d'))
})

test('BindingCache: an eviction removes what is cached, of that id alone', async () => {
  const cache = setCache()
  for (const id of ['d', 'e']) {
    const { reading, answer } = startRead(cache, id)
    answer('found')
    await reading.answer
  }
  cache.evict('d')
  cache.evict('never seen')
  assert.equal(cache.get('d'), undefined)
  assert.ok(cache.get('e'))
})

test('BindingCache: clear drops every binding and marks every read in flight (I5)', async () => {
  const cache = setCache()
  const kept = startRead(cache, 'kept')
  kept.answer('found')
  await kept.reading.answer
  const flying = [startRead(cache, 'd'), startRead(cache, 'd', '3'), startRead(cache, 'e', '1')]

  cache.clear()

  assert.equal(cache.get('kept'), undefined)
  assert.ok(flying.every(({ reading }) => reading.isStale && cache.findReading(reading.destinationId, reading.joinKey.slice(0, 1)) === undefined))
  for (const { answer } of flying) answer('old')
  await Promise.all(flying.map(({ reading }) => reading.answer))
  assert.deepEqual(['d', 'e'].map(id => cache.get(id)), [undefined, undefined])
})

test('BindingCache: an eviction between two reads of 50 leaves one that is shared by all later callers', async () => {
  const cache = setCache()
  let sent = 0
  const ask = (): Promise<string> => cache.findReading('d', '0')?.answer ?? cache.startReading('d', '0', async () => {
    const number = ++sent
    await null
    return `read ${number}`
  }).answer as Promise<string>

  const before = Array.from({ length: 25 }, ask)
  cache.evict('d')
  const after = Array.from({ length: 25 }, ask)

  assert.deepEqual(new Set(await Promise.all(before)), new Set(['read 1']))
  assert.deepEqual(new Set(await Promise.all(after)), new Set(['read 2']))
})
