import assert from 'node:assert/strict'
import test from 'node:test'
import replyFrom from '@fastify/reply-from'
import { lookupAndProxy } from '../../src/index.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { targets } from '../support/targets.ts'

test('standalone helpers without the plugin: the pod gets exactly what the client sent, or the client a 4xx (G04)', async t => {
  const scene = await setHttpScene(t, { plugin: false })
  await scene.app.register(replyFrom)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id/*', lookupAndProxy(scene.registry(), { destinationFrom: request => request.params.id }))
  let passed = 0
  for (const target of targets) {
    const count = pod.requests.length
    const reply = await scene.ask(toRequest(`GET ${target}`))
    if (reply.statusCode === 200) {
      passed++
      assert.deepEqual(pod.requests.slice(count).map(({ url }) => url), [target])
    } else {
      assert.ok(reply.statusCode >= 400 && reply.statusCode <= 499, `${target}: ${reply.statusCode}`)
      assert.equal(pod.requests.length, count)
    }
  }
  assert.ok(passed >= 10, String(passed))
})
