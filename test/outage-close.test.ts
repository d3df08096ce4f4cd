import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { Redis } from 'iovalkey'
import type { Member, Registry } from '../src/index.ts'
import { allFail, everyMemberCall, everyRegistryCall, within } from './support/every-call.ts'
import { findFreePort } from '../services/free-port.ts'
import { startOwnStore } from './support/own-store.ts'
import { startSilentServer } from './support/silence.ts'
import { setScene, until } from './support/store.ts'

const storeTimeout = 400
// Pending calls have storeTimeout, then quit() has a second on an own client.
const closeBoundMs = storeTimeout + 1000

/** Where the instances of a test are connected to, and what happens to it before they are closed. */
type Trouble = (t: TestContext) => Promise<{ url: string, strike: () => Promise<void> }>

const troubles: Record<string, Trouble> = {
  'a store that works': async t => ({ url: (await startOwnStore(t)).url, strike: async () => {} }),
  'a store that is down': async t => {
    const store = await startOwnStore(t)
    return { url: store.url, strike: () => store.kill() }
  },
  'a frozen store': async t => {
    const store = await startOwnStore(t)
    return { url: store.url, strike: async () => { store.freeze() } }
  },
  'a store that was never reachable': async () => ({ url: `redis://127.0.0.1:${await findFreePort()}`, strike: async () => {} }),
  'a store that never said a word': async t => ({ url: `redis://127.0.0.1:${await startSilentServer(t)}`, strike: async () => {} })
}

/** What the clients of a test's process hold open. */
function countSockets (): number {
  return process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap' || name === 'TCPWRAP').length
}

for (const [trouble, prepare] of Object.entries(troubles)) {
  for (const kind of ['own', 'borrowed'] as const) {
    test(`close() with ${trouble} (${kind} client): pending calls, close() and a second close() settle within storeTimeout + 1 s`, async t => {
      const { url, strike } = await prepare(t)
      const scene = setScene(t, url, 'p')
      const client = kind === 'borrowed' ? new Redis(url) : null
      client?.on('error', () => {})
      t.after(() => client?.disconnect())
      const options = { memberIndex: true, storeTimeout, ...(client === null ? {} : { redis: client }) }
      const registry: Registry = scene.registry(options)
      const member: Member = scene.member('pod-1', options)
      await Promise.allSettled([registry.listLiveMembers(), member.register()])

      await strike()
      const pending = Object.entries({ ...everyRegistryCall(registry), ...everyMemberCall(member) }).map(([name, call]) => [name, call()] as const)
      const beat = member.heartbeat()
      const closings = [registry.close(), registry.close(), member.close(), member.close()]
      const outcomes = await within(closeBoundMs, 'pending calls', Promise.allSettled(pending.map(([, call]) => call)))
      await within(closeBoundMs, 'close()', Promise.all([...closings, beat]))
      await within(0, 'a later close()', Promise.all([registry.close(), member.close()]))

      for (const [i, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') continue
        const name = pending[i]?.[0]
        assert.ok(['PLT_COORDINATOR_UNAVAILABLE', 'PLT_COORDINATOR_CLOSED', 'PLT_COORDINATOR_NOT_REGISTERED'].includes(outcome.reason.code), `${name}: ${outcome.reason}`)
      }
      await allFail(0, { ...everyRegistryCall(registry), ...everyMemberCall(member), deregister: () => member.deregister() }, 'PLT_COORDINATOR_CLOSED')
      assert.equal(await within(0, 'heartbeat()', member.heartbeat()), false)
      if (client !== null) {
        assert.equal(client.listenerCount('error'), 1, 'only the listener of the application is left')
        assert.notEqual(client.status, 'end', 'the client of the application stays open')
      }
    })
  }
}

test('close() of own clients leaves no socket, with a store that works, is frozen, or never spoke', async t => {
  const [working, frozen] = [await startOwnStore(t), await startOwnStore(t)]
  const silent = `redis://127.0.0.1:${await startSilentServer(t)}`
  const scenes = [working.url, frozen.url].map(url => setScene(t, url))
  await Promise.all(scenes.map(scene => scene.raw.ping()))
  const before = countSockets()
  const registries = [...scenes.map(scene => scene.registry({ storeTimeout })), scenes[0]?.registry({ storeTimeout, redis: silent })]
  await Promise.allSettled(registries.map(registry => registry?.listLiveMembers()))
  // The silent server runs in this process, so its end of the connection counts too.
  assert.ok(countSockets() >= before + 3)

  frozen.freeze()
  await within(closeBoundMs, 'close()', Promise.all(registries.map(registry => registry?.close())))
  // iovalkey destroys a socket whose other side does not close it after its disconnectTimeout, 2 s.
  await until(() => countSockets() <= before, 'no socket is left', 10_000)
  frozen.thaw()
})

test('close() with a getLoad that hangs: register(), heartbeat() and close() settle within storeTimeout + 1 s', async t => {
  const scene = setScene(t)
  const member = scene.member('pod-1', { ttl: 600, storeTimeout, getLoad: () => new Promise(() => {}) })
  const registering = Promise.allSettled([member.register()])
  const beat = member.heartbeat()

  await within(closeBoundMs, 'close()', member.close())
  const [registered] = await within(closeBoundMs, 'register()', registering)
  assert.equal(await within(closeBoundMs, 'heartbeat()', beat), false)

  assert.ok(registered.status === 'rejected' && ['PLT_COORDINATOR_NOT_REGISTERED', 'PLT_COORDINATOR_CLOSED'].includes(registered.reason.code))
  assert.deepEqual(await scene.keys(), [])
})

test('close() while 50 claims are on their way: each is answered with its pod or a code, and nothing is bound twice', async t => {
  const scene = setScene(t)
  for (let i = 0; i < 5; i++) await scene.rawMember(`pod-${i}`)
  const registry = scene.registry()
  const calls = Array.from({ length: 50 }, (_, i) => registry.resolveDestination(`tenant-${i % 10}`, { claimOnMiss: true }))

  const [outcomes] = await within(2000, 'close()', Promise.all([Promise.allSettled(calls), registry.close()]))

  for (const [i, outcome] of outcomes.entries()) {
    const pods = await scene.pods(`tenant-${i % 10}`)
    if (outcome.status === 'fulfilled') assert.deepEqual(pods, [outcome.value?.memberId])
    else assert.equal(outcome.reason.code, 'PLT_COORDINATOR_CLOSED')
    assert.ok(pods.length <= 1)
  }
})
