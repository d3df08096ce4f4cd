import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { diagnosticsChannels } from '../src/index.ts'
import type { CoordinatorError, DiagnosticsEvents } from '../src/index.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'

for (const kind of ['own', 'borrowed'] as const) {
  test(`the heartbeat line of the contract (${kind} client): a pod is listed again after an outage longer than its ttl that lost all data (G10)`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url)
    const client = kind === 'borrowed' ? new Redis(store.url) : null
    client?.on('error', () => {})
    t.after(() => client?.disconnect())
    const reported: CoordinatorError[] = []
    const member = scene.member('pod-1', {
      ttl: 0.5, storeTimeout: 300, getLoad: () => 3, onError: error => { reported.push(error) }, ...(client === null ? {} : { redis: client })
    })
    await member.register()
    const heartbeat = setInterval(() => member.heartbeat(), 100)
    t.after(() => clearInterval(heartbeat))
    heartbeat.unref()
    const registry = scene.registry({ storeTimeout: 300 })

    await store.kill()
    const downSince = performance.now()
    await until(() => reported.length > 0 && performance.now() - downSince > 1500, 'the outage outlasts the ttl')
    await store.start()
    await until(async () => await registry.listLiveMembers().then(live => live.length === 1, () => false), 'the pod is listed again')

    assert.deepEqual(await registry.listLiveMembers(), [{ memberId: 'pod-1', address: 'http://pod-1.test:3000', load: 3, draining: false }])
    const ttlMs = await scene.raw.pttl(scene.key('member', 'pod-1'))
    assert.ok(ttlMs > 0 && ttlMs <= 500, `the record expires (${ttlMs})`)
    assert.deepEqual(await scene.raw.smembers(scene.key('members')), ['pod-1'])
    assert.deepEqual(new Set(reported.map(error => error.code)), new Set(['PLT_COORDINATOR_UNAVAILABLE']))
  })
}

test('a store that restarts empty: members, draining flags and locks come back by heartbeat; bindings are the pods\' to add again (G36)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const pods = [await scene.liveMember('pod-1', { memberIndex: true }), await scene.liveMember('pod-2', { memberIndex: true })] as const
  await pods[1].setDraining(true)
  await pods[0].registerLock('lock-1', 'tenant-1', { isolationLevel: 'serializable' })
  await pods[0].addToDestination('tenant-1')
  const registry = scene.registry({ memberIndex: true, cache: false })
  const statuses: string[] = []
  const hear = (message: unknown): void => {
    const { keyPrefix, memberId, status } = message as DiagnosticsEvents['heartbeat']
    if (keyPrefix === scene.keyPrefix) statuses.push(`${memberId} ${status}`)
  }
  subscribe(diagnosticsChannels.heartbeat, hear)
  t.after(() => unsubscribe(diagnosticsChannels.heartbeat, hear))

  await store.kill()
  await store.start()
  for (const pod of pods) await until(() => pod.heartbeat(), 'the pod beats')

  assert.deepEqual(statuses, ['pod-1 restored', 'pod-2 restored'])
  assert.deepEqual((await registry.listLiveMembers()).map(({ memberId, draining }) => [memberId, draining]), [['pod-1', false], ['pod-2', true]])
  assert.deepEqual(await registry.resolveLock('lock-1'), { memberId: 'pod-1', address: 'http://pod-1.test:3000' })
  const { incarnation, ...lock } = await scene.raw.hgetall(scene.key('lock', 'lock-1'))
  assert.deepEqual(lock, { podId: 'pod-1', destinationId: 'tenant-1', isolationLevel: 'serializable' })
  assert.equal(incarnation, pods[0].incarnation)
  assert.ok(await scene.raw.pttl(scene.key('lock', 'lock-1')) > 0)
  assert.equal(await registry.hasBinding('tenant-1'), false)
  assert.equal(await registry.resolveDestination('tenant-1'), null)
  assert.deepEqual(await pods[0].listOwned(), [])

  assert.equal(await pods[0].addToDestination('tenant-1'), true)
  assert.equal((await registry.resolveDestination('tenant-1'))?.memberId, 'pod-1')
  assert.deepEqual(await pods[0].listOwned(), ['tenant-1'])
  assert.equal(await pods[1].addToDestination('tenant-1'), false)
})

test('a store that restarts empty: what a registry cached ends with the cache\'s ttl, and 50 claims then agree on one pod (G36)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const pods = [await scene.liveMember('pod-1'), await scene.liveMember('pod-2')]
  const registries = [0, 1, 2, 3].map(() => scene.registry({ cache: { ttl: 50 } }))
  await registries[0]?.resolveDestination('tenant-1', { claimOnMiss: true })

  await store.kill()
  await store.start()
  for (const pod of pods) await until(() => pod.heartbeat(), 'the pod beats')
  const ask = (i: number): Promise<unknown> | undefined => registries[i % 4]?.resolveDestination('tenant-1', { claimOnMiss: true })
  await until(async () => await Promise.all([0, 1, 2, 3].map(ask)).then(() => scene.raw.exists(scene.key('destination', 'tenant-1')), () => false), 'all claim again')
  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)))

  const [owner, ...others] = await scene.pods('tenant-1')
  assert.deepEqual(others, [])
  assert.deepEqual(found, found.map(() => ({ memberId: owner, address: `http://${owner}.test:3000`, reassigned: false })))
})

test('a heartbeat during an outage tells onError and the diagnostics channel, once each time, and never rejects (G10, G45)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  const told: CoordinatorError[] = []
  const published: CoordinatorError[] = []
  const hear = (message: unknown): void => {
    const { keyPrefix, error } = message as DiagnosticsEvents['error']
    if (keyPrefix === scene.keyPrefix) published.push(error)
  }
  subscribe(diagnosticsChannels.error, hear)
  t.after(() => unsubscribe(diagnosticsChannels.error, hear))
  const member = await scene.liveMember('pod-1', { storeTimeout: 300, onError: error => { told.push(error) } })

  store.freeze() // a frozen store breaks no connection: what is told is told of the beats
  const beats = [await member.heartbeat(), await member.heartbeat()]
  store.thaw()

  assert.deepEqual(beats, [false, false])
  assert.equal(told.length, 2)
  assert.deepEqual(told, published)
  for (const error of told) assert.equal(error.code, 'PLT_COORDINATOR_UNAVAILABLE')
  await until(() => member.heartbeat(), 'the pod beats')
})

test('background work that fails (the clean-up of dead pods) is reported, and the call that started it is answered (G45)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url)
  await scene.rawMember('pod-1', {}, 600)
  await scene.raw.sadd(scene.key('destination', 'tenant-1'), 'pod-1', 'dead')
  await scene.raw.sadd(scene.key('members'), 'dead')
  const told: CoordinatorError[] = []
  const url = `redis://reader:pw@127.0.0.1:${store.port}`
  await scene.raw.call('ACL', 'SETUSER', 'reader', 'on', '>pw', '~*', '&*', '+@all', '-srem')
  const registry = scene.registry({ redis: url, onError: error => { told.push(error) } })

  const resolved = await registry.resolveDestination('tenant-1')
  const live = await registry.listLiveMembers()
  await registry.close() // waits for the work in the background

  assert.equal(resolved?.memberId, 'pod-1')
  assert.deepEqual(live.map(each => each.memberId), ['pod-1'])
  assert.deepEqual(told.map(error => error.code), ['PLT_COORDINATOR_STORE_REFUSED', 'PLT_COORDINATOR_STORE_REFUSED'])
  assert.deepEqual(await scene.pods('tenant-1'), ['dead', 'pod-1'])
  assert.deepEqual((await scene.raw.smembers(scene.key('members'))).sort(), ['dead', 'pod-1'])
})
