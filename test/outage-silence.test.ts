import assert from 'node:assert/strict'
import test from 'node:test'
import { Redis } from 'iovalkey'
import { findFreePort } from '../services/free-port.ts'
import { startOwnStore } from './support/own-store.ts'
import type { OwnStore } from './support/own-store.ts'
import { runOutageProcess } from './support/run-outage-process.ts'
import { startSilentServer } from './support/silence.ts'
import { until } from './support/store.ts'

/** True as soon as the store's pod is listed with a ttl: the process lives and beats. */
async function isListed (store: OwnStore): Promise<boolean> {
  const client = new Redis(store.url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  try {
    return await client.sismember('p:members', 'pod-1') === 1 && await client.pttl('p:member:pod-1') > 0
  } finally {
    client.disconnect()
  }
}

for (const kind of ['own', 'borrowed']) {
  for (const mode of kind === 'own' ? ['plain', 'deaf', 'throwing-listener', 'async-listener'] : ['plain', 'deaf']) {
    test(`a store that goes away and comes back empty: a process (${kind} client, ${mode}) lives, prints nothing and is told (G25, G45, G10)`, async t => {
      const store = await startOwnStore(t)
      const app = runOutageProcess(t, mode, store.url, kind)
      await app.isReady()

      await store.kill()
      // The length of the outage: the application has felt it, in beats and in requests, several times over.
      await until(() => {
        assert.ok(app.isAlive())
        return app.failures.beats >= 5 && app.failures.requests >= 20
      }, 'beats and requests have failed')
      await store.start()
      await until(() => isListed(store), 'the pod is listed again')
      await app.stop()
      const { exitCode, report, stdout, stderr } = await app.end()

      assert.equal(exitCode, 0)
      assert.equal(stdout, '')
      assert.equal(stderr, '')
      assert.equal(report.rejections, 0)
      assert.equal(report.told.includes('PLT_COORDINATOR_UNAVAILABLE'), mode !== 'deaf')
      assert.deepEqual(report.told, report.published)
    })
  }
}

for (const [name, port] of [
  ['refuses connections', () => findFreePort()],
  ['accepts connections and says nothing', startSilentServer]
] as const) {
  for (const kind of ['own', 'borrowed']) {
    test(`a store that ${name}: a process (${kind} client) whose instances are closed ends by itself, silently`, async t => {
      const app = runOutageProcess(t, 'never-reachable', `redis://127.0.0.1:${await port(t)}`, kind)

      const { exitCode, report, stdout, stderr } = await app.end()

      assert.equal(exitCode, 0)
      assert.equal(stdout, '')
      assert.equal(stderr, '')
      assert.equal(report.rejections, 0)
    })
  }
}

test('a store that freezes: a process whose instances are closed meanwhile ends by itself, silently', async t => {
  const store = await startOwnStore(t)
  const app = runOutageProcess(t, 'plain', store.url)
  await app.isReady()

  store.freeze()
  await app.stop()
  const { exitCode, report, stdout, stderr } = await app.end()

  assert.equal(exitCode, 0)
  assert.equal(stdout + stderr, '')
  assert.equal(report.rejections, 0)
})
