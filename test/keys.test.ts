import assert from 'node:assert/strict'
import test from 'node:test'
import { buildKeys, hasHashTag } from '../src/keys.ts'

test('buildKeys: names every key of the contract', () => {
  assert.deepEqual(buildKeys('myservice', ''), {
    members: 'myservice:members',
    memberBase: 'myservice:member:',
    destinationBase: 'myservice:destination:',
    ownedBase: 'myservice:owned:',
    lockBase: 'myservice:lock:',
    features: 'myservice:features',
    changesChannel: 'myservice:changes'
  })
})

test('buildKeys: the client’s own prefix is on the channel alone, since the client puts it before keys', () => {
  const keys = buildKeys('p', 'app:')
  assert.equal(keys.changesChannel, 'app:p:changes')
  const { changesChannel, ...others } = keys
  assert.deepEqual(Object.values(others).filter(name => name.includes('app')), [])
})

test('buildKeys: no id makes the key of one kind that of another, and the same id of two kinds is two keys', () => {
  const { members, features, memberBase, destinationBase, ownedBase, lockBase } = buildKeys('p', '')
  const bases = [memberBase, destinationBase, ownedBase, lockBase]
  const ids = ['s', 'members', ':', 'a:b', 'features', 'member:a']
  const names = bases.flatMap(base => ids.map(id => base + id))
  assert.equal(new Set([...names, members, features]).size, names.length + 2)
})

test('hasHashTag: the first brace must open a tag that is closed and not empty, as a cluster reads it', () => {
  for (const prefix of ['{a}', '{myservice}', 'x{a}y', '{a}{b}', '{{a}', '{ }', '{a}}', 'a}{b}']) assert.equal(hasHashTag(prefix), true, prefix)
  for (const prefix of ['', 'myservice', '{}', '{', '}', '{a', 'a}', '{}a}', '{}{a}', '}a{']) assert.equal(hasHashTag(prefix), false, prefix)
})
