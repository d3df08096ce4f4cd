import assert from 'node:assert/strict'
import test from 'node:test'
import { gate } from './support/script-client.ts'
import { setScene, until } from './support/store.ts'

const noNumbers: [name: string, value: unknown][] = [
  ['NaN', NaN], ['Infinity', Infinity], ['-Infinity', -Infinity], ['undefined', undefined], ['text', '0.1'], ['null', null], ['a bigint', 1n], ['an object', {}]
]

for (const [name, value] of noNumbers) {
  test(`getLoad: ${name} is no load: the beat renews the ttl, onError hears of it, and the pod is never the idlest (G11)`, async t => {
    const scene = setScene(t)
    const errors: string[] = []
    let load: unknown = 1
    const member = await scene.liveMember('pod-1', { getLoad: () => load as number, onError: error => { errors.push(error.code) } })
    await scene.liveMember('pod-2', { getLoad: () => 1e9 })
    await scene.raw.pexpire(scene.key('member', 'pod-1'), 5000)
    load = value

    assert.equal(await member.heartbeat(), true)

    assert.deepEqual(errors, ['PLT_COORDINATOR_LOAD_UNKNOWN'])
    assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 25_000)
    assert.deepEqual((await member.listPeerLoad()).map(peer => [peer.memberId, peer.load]), [['pod-1', NaN], ['pod-2', 1e9]])
    const registry = scene.registry({ strategy: 'least-loaded', cache: false })
    for (let turn = 0; turn < 5; turn++) {
      assert.equal((await registry.pickMember())?.memberId, 'pod-2')
      assert.equal((await registry.resolveDestination(`tenant-${turn}`, { claimOnMiss: true }))?.memberId, 'pod-2')
    }
  })
}

test('getLoad: fractions and negative numbers order the pods (G11)', async t => {
  const scene = setScene(t)
  const loads = { 'pod-1': 0.9, 'pod-2': 0.1, 'pod-3': -0.5 }
  for (const [memberId, load] of Object.entries(loads)) await scene.liveMember(memberId, { getLoad: () => load, loadPerBinding: 0 })
  const registry = scene.registry({ strategy: 'least-loaded' })

  assert.deepEqual((await registry.listLiveMembers()).map(({ load }) => load), [0.9, 0.1, -0.5])
  assert.equal((await registry.pickMember())?.memberId, 'pod-3')
  await scene.raw.del(scene.key('member', 'pod-3'))
  assert.equal((await registry.pickMember())?.memberId, 'pod-2')
  assert.equal((await registry.resolveDestination('tenant-1', { claimOnMiss: true }))?.memberId, 'pod-2')
})

test('getLoad: that throws or rejects leaves the last good load in place and the ttl renewed (G11)', async t => {
  const scene = setScene(t)
  const failure = new Error('the pool is gone')
  const errors: { code: string, cause: unknown }[] = []
  const answers: (() => number | Promise<number>)[] = [() => 5, () => { throw failure }, async () => { throw failure }, () => 6]
  let beat = 0
  const member = await scene.liveMember('pod-1', { getLoad: () => answers[beat]?.() ?? NaN, onError: ({ code, cause }) => { errors.push({ code, cause }) } })
  const published: (string | null)[] = []
  for (beat = 1; beat < answers.length; beat++) {
    await scene.raw.pexpire(scene.key('member', 'pod-1'), 5000)
    assert.equal(await member.heartbeat(), true)
    assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 25_000)
    published.push(await scene.raw.hget(scene.key('member', 'pod-1'), 'load'))
  }

  assert.deepEqual(published, ['5', '5', '6'])
  assert.deepEqual(errors, [{ code: 'PLT_COORDINATOR_LOAD_UNKNOWN', cause: failure }, { code: 'PLT_COORDINATOR_LOAD_UNKNOWN', cause: failure }])
})

test('getLoad: that throws at register() does not keep the pod from starting, with no load known', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { getLoad: () => { throw new Error('not yet') } })
  const [peer] = await member.listPeerLoad()
  assert.deepEqual([peer?.memberId, peer?.load], ['pod-1', NaN])
})

test('getLoad: may be async', async t => {
  const scene = setScene(t)
  const member = await scene.liveMember('pod-1', { getLoad: async () => 2.5 })
  assert.equal((await member.listPeerLoad())[0]?.load, 2.5)
})

test('getLoad: that hangs is given half the ttl, keeps its last good load, and holds up no later beat', async t => {
  const scene = setScene(t)
  const errors: string[] = []
  const answer = gate()
  let [isHanging, calls] = [false, 0]
  const member = await scene.liveMember('pod-1', {
    ttl: 0.4,
    onError: error => { errors.push(error.code) },
    getLoad: async () => {
      calls++
      if (!isHanging) return 3
      await answer.passed
      return 9
    }
  })
  isHanging = true
  calls = 0
  const begunAt = performance.now()

  assert.equal(await member.heartbeat(), true)
  assert.ok(performance.now() - begunAt >= 190, 'it was given its time')
  const lateAt = performance.now()
  for (let beats = 0; beats < 50; beats++) assert.equal(await member.heartbeat(), true)
  assert.ok(performance.now() - lateAt < 5000, 'once it is late no beat waits for it: 50 that did would take 10 s')

  assert.equal(await scene.raw.hget(scene.key('member', 'pod-1'), 'load'), '3')
  assert.ok(await scene.raw.pttl(scene.key('member', 'pod-1')) > 0)
  assert.equal(calls, 1)
  assert.deepEqual(errors, ['PLT_COORDINATOR_LOAD_UNKNOWN'], 'reported once')

  isHanging = false
  answer.open()
  await until(async () => {
    await member.heartbeat()
    return await scene.raw.hget(scene.key('member', 'pod-1'), 'load') === '3' && calls > 1
  }, 'it is asked again')
})
