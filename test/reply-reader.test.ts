import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeCandidate, ReplyReader } from '../src/reply-reader.ts'

test('ReplyReader: reads from front to back, texts as they are and counted lists with what follows left over', () => {
  const reply = new ReplyReader(['bound', 2, 'a', 'b', 0, 'x', 'y'])
  assert.equal(reply.text(), 'bound')
  assert.deepEqual(reply.list(() => reply.text()), ['a', 'b'])
  assert.deepEqual(reply.list(() => reply.text()), [])
  assert.deepEqual(reply.rest(), ['x', 'y'])
  assert.deepEqual(reply.rest(), [])
})

test('ReplyReader: a count may be a number or a text, and lists may hold things of several texts', () => {
  const reply = new ReplyReader(['2', 'a', '1', 'b', '2', 'end'])
  assert.deepEqual(reply.list(() => [reply.text(), reply.load()]), [['a', 1], ['b', 2]])
  assert.equal(reply.text(), 'end')
})

test('ReplyReader: a load is a number, or NaN for any text that is none (G11)', () => {
  for (const [text, load] of [
    ['0', 0], ['0.25', 0.25], ['-1', -1], ['1e3', 1000], [' 7 ', 7], ['', NaN], [' ', NaN], ['x', NaN], ['NaN', NaN], ['1,5', NaN], ['nan', NaN], ['undefined', NaN], ['12 pods', NaN]
  ]) assert.deepEqual(new ReplyReader([text]).load(), load, `'${text}'`)
})

test('ReplyReader: pending is a finite number, 0 for anything else', () => {
  for (const [text, pending] of [['0.5', 0.5], ['3', 3], ['', 0], ['x', 0], ['NaN', 0], ['Infinity', 0], ['inf', 0], ['1e999', 0]]) {
    assert.equal(new ReplyReader([text]).pending(), pending, `'${text}'`)
  }
})

test('ReplyReader: a key that does not expire lives for ever, one at its end has 0 ms', () => {
  for (const [value, ms] of [[-1, Infinity], ['-1', Infinity], [0, 0], [1500, 1500], ['1500', 1500]]) assert.equal(new ReplyReader([value]).milliseconds(), ms)
})

test('ReplyReader: numbers of the server become texts where a text is asked for', () => {
  const reply = new ReplyReader([1, 2 ** 53 - 1])
  assert.deepEqual([reply.text(), reply.rest()], ['1', ['9007199254740991']])
})

test('decodeCandidate: takes five texts, no more', () => {
  const reply = new ReplyReader(['a', 'http://a', '0.5', '2', '1', 'b', 'http://b', '', '', '', 'next'])
  assert.deepEqual(decodeCandidate(reply), { memberId: 'a', address: 'http://a', load: 0.5, pending: 2, draining: true })
  assert.deepEqual(decodeCandidate(reply), { memberId: 'b', address: 'http://b', load: NaN, pending: 0, draining: false })
  assert.equal(reply.text(), 'next')
})
