import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { BoundPod, MemberInfo } from '@platformatic/coordinator'
import { decideFanIn, findKeeper, rankPeers } from '../../examples/storage-db/src/fan-out-rule.ts'
import type { FanOutRecord } from '../../examples/storage-db/src/fan-out-rule.ts'

const limits = { maxPodsPerTenant: 3, helpTime: 1000 }

function live (memberId: string, draining = false): BoundPod {
  return { memberId, isLive: true, member: { memberId, address: 'http://a.test', load: 0, draining } }
}

const dead = (memberId: string): BoundPod => ({ memberId, isLive: false, member: null })
const peer = (memberId: string, load: number, draining = false): MemberInfo => ({ memberId, address: 'http://a.test', load, draining })
const record = (keeper: string, changedAgo = 60_000): FanOutRecord => ({ tenantId: 't', keeper, changedAgo, saturatedAgo: 60_000 })
const names = (pods: MemberInfo[]): string[] => pods.map(pod => pod.memberId)

test('rankPeers: the idlest first; none that drains or is bound, one that does not know its load last', () => {
  const peers = [peer('a', 5), peer('b', 0, true), peer('c', 2), peer('d', NaN), peer('e', 1), peer('f', 3)]
  assert.deepEqual(names(rankPeers('a', [live('a'), dead('e')], null, peers, limits)), ['c', 'f', 'd'])
})

test('rankPeers: none beyond the limit, where dead pods do not count', () => {
  const peers = [peer('x', 0)]
  assert.deepEqual(names(rankPeers('a', [live('a'), live('b'), live('c')], record('a'), peers, limits)), [])
  assert.deepEqual(names(rankPeers('a', [live('a'), live('b'), dead('c'), dead('d')], record('a'), peers, limits)), ['x'])
})

test('rankPeers: none while the last one has not had its time to help', () => {
  const peers = [peer('x', 0)]
  assert.deepEqual(names(rankPeers('a', [live('a'), live('b')], record('a', 999), peers, limits)), [])
  assert.deepEqual(names(rankPeers('a', [live('a'), live('b')], record('a', 1000), peers, limits)), ['x'])
  assert.deepEqual(names(rankPeers('a', [live('a'), dead('b')], record('a', 0), peers, limits)), ['x'], 'one that died cannot help')
})

test('rankPeers: none by a pod that the tenant is not bound to', () => {
  assert.deepEqual(names(rankPeers('z', [live('a')], null, [peer('x', 0)], limits)), [])
  assert.deepEqual(names(rankPeers('z', [live('a'), dead('z')], null, [peer('x', 0)], limits)), [])
})

test('findKeeper: the recorded one while it lives and does not drain, else the first by name that does', () => {
  assert.equal(findKeeper('c', [live('a'), live('c')]), 'c')
  assert.equal(findKeeper('c', [live('b'), live('a'), live('c', true)]), 'a')
  assert.equal(findKeeper('c', [dead('c'), live('b'), live('a', true)]), 'b')
  assert.equal(findKeeper('c', [live('b'), live('a')]), 'a')
  assert.equal(findKeeper(undefined, [live('a')]), 'a')
  assert.equal(findKeeper('a', [live('a', true), dead('b')]), null)
})

test('decideFanIn: an extra pod leaves when it is calm, the keeper never, and one that is alone settles', () => {
  const binding = [live('a'), live('b'), live('c')]
  assert.deepEqual(['a', 'b', 'c'].map(memberId => decideFanIn(memberId, binding, record('b'), true)), ['leave', 'stay', 'leave'])
  assert.deepEqual(['a', 'b', 'c'].map(memberId => decideFanIn(memberId, binding, record('b'), false)), ['stay', 'stay', 'stay'])
  assert.equal(decideFanIn('a', [live('a'), dead('b')], record('b'), false), 'settled')
  assert.equal(decideFanIn('z', binding, record('b'), true), 'stay', 'it is not bound')
  assert.equal(decideFanIn('a', [live('a'), live('b', true)], record('b'), true), 'stay', 'the recorded one is on its way out')
})

const podState = fc.constantFrom<(memberId: string) => BoundPod>(live, memberId => live(memberId, true), dead)

test('decideFanIn: whatever the pods and the record, of those that leave by one reading one that stays is left', () => {
  fc.assert(fc.property(fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 }), fc.array(podState, { minLength: 5, maxLength: 5 }), fc.constantFrom('a', 'b', 'c', 'x'), (memberIds, states, keeper) => {
    const binding = memberIds.map((memberId, i) => states[i]?.(memberId) ?? live(memberId))
    const leaving = memberIds.filter(memberId => decideFanIn(memberId, binding, record(keeper), true) === 'leave')
    const staying = binding.filter(pod => pod.isLive && !pod.member.draining && !leaving.some(memberId => memberId === pod.memberId))
    if (leaving.length > 0) assert.ok(staying.length > 0, `all of ${leaving.join(', ')} would leave`)
  }), { numRuns: 2000 })
})
