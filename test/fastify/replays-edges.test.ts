import assert from 'node:assert/strict'
import test from 'node:test'
import { startRawPod } from '../support/http-pod.ts'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { deadAddress, readRefusal } from '../support/refusals.ts'

const limit = { timeout: 60_000 }

test('replays: a GET that was cut after a 1xx, or after its head, is not sent again; part of a head counts as nothing', limit, async t => {
  for (const [start, count] of [['HTTP/1.1 102 Processing\r\n\r\n', 1], ['HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', 1], ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n', 1], ['HTTP/1.1 20', 2]] as const) {
    const scene = await setHttpScene(t)
    const pod = await startRawPod(t, socket => { socket.end(start) })
    await scene.register('pod-1', pod.address, ['x'])
    scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
    const client = await scene.client()
    client.write(toRequest('GET /d/x'))
    const reply = await client.readReply().catch(() => undefined)
    assert.ok(reply?.isComplete !== true || readRefusal(reply).statusCode === 502, start)
    assert.equal(pod.requests.length, count, start)
  }
})

test('replays: a live pod that drains is asked when the other of the destination refused', limit, async t => {
  const scene = await setHttpScene(t)
  await scene.register('dead-1', deadAddress, ['x'])
  const draining = await scene.pod('draining', { destinationIds: ['x'] })
  await draining.member.setDraining(true)
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 200)
  assert.equal(draining.requests.length, 1)
})
