import assert from 'node:assert/strict'
import test from 'node:test'
import { allFail, everyMemberCall, everyRegistryCall, failure, within, writes } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'

const storeTimeout = 400

test('a frozen store: every registry call rejects within storeTimeout, and works again after the thaw (G09)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.liveMember('pod-1', { ttl: 600, memberIndex: true })
  const registry = scene.registry({ memberIndex: true, storeTimeout, cache: false })
  await registry.listLiveMembers()

  store.freeze()
  const errors = await allFail(storeTimeout, everyRegistryCall(registry), 'PLT_COORDINATOR_UNAVAILABLE')
  store.thaw()

  for (const [name, error] of Object.entries(errors)) {
    assert.equal(/the outcome of the write is unknown/.test(error.message), writes.has(name), `${name}: ${error.message}`)
  }
  await until(() => registry.hasBinding('x').then(() => true, () => false), 'the registry reads again')
  // Commands given up are executed by a store that thaws: after them a claim of this one has its say.
  assert.equal((await registry.resolveDestination('tenant-2', { claimOnMiss: true }))?.memberId, 'pod-1')
  assert.deepEqual(await scene.pods('tenant-2'), ['pod-1'])
})

test('a frozen store: every member call rejects within storeTimeout, and works again after the thaw (G09)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const names = Object.keys(everyMemberCall(scene.member('any')))
  const members = new Map<string, ReturnType<typeof scene.member>>()
  for (const [i, name] of names.entries()) members.set(name, await scene.liveMember(`pod-${i}`, { memberIndex: true, storeTimeout }))

  store.freeze()
  const calls = Object.fromEntries([...members].map(([name, member]) => [name, () => everyMemberCall(member)[name]?.() ?? Promise.resolve()]))
  const errors = await allFail(storeTimeout, calls, 'PLT_COORDINATOR_UNAVAILABLE')
  store.thaw()

  for (const [name, error] of Object.entries(errors)) {
    assert.equal(/the outcome of the write is unknown/.test(error.message), writes.has(name), `${name}: ${error.message}`)
  }
  for (const member of members.values()) await until(() => member.heartbeat(), 'the member beats again')
  assert.equal((await members.get('listPeerLoad')?.listPeerLoad())?.length, names.length)
})

test('a frozen store: heartbeat() resolves to false within storeTimeout, and to true after the thaw (G09)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { storeTimeout })

  store.freeze()
  const beats = await within(storeTimeout, '50 heartbeats', Promise.all(Array.from({ length: 50 }, () => member.heartbeat())))
  store.thaw()

  assert.deepEqual(new Set(beats), new Set([false]))
  await until(() => member.heartbeat(), 'the member beats again')
})

test('a frozen store: 50 writes of one member at once all settle within twice storeTimeout (G09)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const member = await scene.liveMember('pod-1', { storeTimeout })

  store.freeze()
  const draining = await within(2 * storeTimeout, '50 setDraining()', Promise.allSettled(Array.from({ length: 50 }, () => member.setDraining(true))))
  const [beat, deregistered] = await within(2 * storeTimeout, 'heartbeat() and deregister()', Promise.allSettled([member.heartbeat(), member.deregister()]))
  store.thaw()

  for (const outcome of draining) assert.equal(outcome.status === 'rejected' && outcome.reason.code, 'PLT_COORDINATOR_UNAVAILABLE')
  assert.deepEqual(beat, { status: 'fulfilled', value: false })
  assert.equal(deregistered?.status === 'rejected' && deregistered.reason.code, 'PLT_COORDINATOR_UNAVAILABLE')
})

for (const [name, write] of [
  ['addPodToDestination', 'add'], ['removePodFromDestination', 'remove'], ['deregisterDestination', 'deregister']
] as const) {
  test(`a frozen store: ${name} that was given up evicts the id, and the write may still happen (G09)`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url)
    await scene.rawMember('pod-1', {}, 600)
    await scene.rawMember('pod-2', {}, 600)
    await scene.raw.sadd(scene.key('destination', 'tenant-1'), 'pod-1')
    const registry = scene.registry({ storeTimeout, cache: { ttl: 600_000 } })
    await registry.resolveDestination('tenant-1')
    await registry.addPodToDestination('other', 'pod-1') // so that the store knows the script of bind
    await registry.removePodFromDestination('other', 'pod-1')
    await registry.deregisterDestination('other')
    const change = {
      add: () => registry.addPodToDestination('tenant-1', 'pod-2'),
      remove: () => registry.removePodFromDestination('tenant-1', 'pod-1'),
      deregister: () => registry.deregisterDestination('tenant-1')
    }[write]

    store.freeze()
    const error = await failure(storeTimeout, name, change(), 'PLT_COORDINATOR_UNAVAILABLE')
    // What was cached before the write is not used any more: asking again goes to the store.
    await failure(storeTimeout, 'resolveDestination', registry.resolveDestination('tenant-1'), 'PLT_COORDINATOR_UNAVAILABLE')
    store.thaw()

    assert.match(error.message, /the outcome of the write is unknown: no reply within 400 ms/)
    const expected = { add: ['pod-1', 'pod-2'], remove: [], deregister: [] }[write]
    await until(async () => JSON.stringify(await scene.pods('tenant-1')) === JSON.stringify(expected), 'the thawed store executes what was given up')
    const found = await Promise.all(Array.from({ length: 10 }, () => registry.resolveDestination('tenant-1')))
    assert.deepEqual([...new Set(found.map(each => each?.memberId))].sort(), write === 'add' ? ['pod-1', 'pod-2'] : [undefined])
  })
}

test('a frozen store: a claim that was given up is made once at the thaw, and every later caller gets that pod (G09)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  for (let i = 0; i < 5; i++) await scene.rawMember(`pod-${i}`, {}, 600)
  const registries = [0, 1].map(() => scene.registry({ storeTimeout }))
  await Promise.all(registries.map(registry => registry.resolveDestination('warm-up', { claimOnMiss: true })))

  store.freeze()
  await Promise.all(registries.map(registry =>
    failure(storeTimeout, 'claim', registry.resolveDestination('tenant-1', { claimOnMiss: true }), 'PLT_COORDINATOR_UNAVAILABLE')))
  store.thaw()

  await until(async () => (await scene.pods('tenant-1')).length > 0, 'the thawed store made the claim')
  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => registries[i % 2]?.resolveDestination('tenant-1', { claimOnMiss: true })))
  assert.deepEqual([...new Set(found.map(each => each?.memberId))], await scene.pods('tenant-1'))
})
