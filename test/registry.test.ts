import assert from 'node:assert/strict'
import test from 'node:test'
import { setScene } from './support/store.ts'

test('resolveDestination: a first touch binds one live pod and answers with its address', async t => {
  const scene = setScene(t)
  await scene.liveMember('pod-1')
  const registry = scene.registry()

  const resolved = await registry.resolveDestination('tenant-1', { claimOnMiss: true })

  assert.deepEqual(resolved, { address: 'http://pod-1.test:3000', memberId: 'pod-1', reassigned: false })
  assert.deepEqual(await scene.pods('tenant-1'), ['pod-1'])
})
