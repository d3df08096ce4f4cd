import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { setHttpScene } from '../support/http-scene.ts'
import { toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

const limit = { timeout: 120_000 }
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

async function setScene (t: test.TestContext) {
  const scene = await setHttpScene(t)
  const pod = await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.all('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id, onResult: scene.onResult }))
  return { scene, pod }
}

test('streaming: an event stream\'s head arrives before its first event, each event at once, and it may idle in between', limit, async t => {
  const { scene, pod } = await setScene(t)
  let send: ((event: string) => void) | undefined
  pod.answer = response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    send = event => { response.write(`data: ${event}\n\n`) }
  }
  const client = await scene.client()
  client.write(toRequest('GET /d/x'))
  await until(() => client.reader.bytes.includes('text/event-stream'), 'the head came')
  assert.doesNotMatch(client.reader.bytes.toString(), /data:/)
  for (const event of ['one', 'two']) {
    send?.(event)
    await until(() => client.reader.bytes.includes(`data: ${event}\n\n`), `event ${event} came`, 5000)
    await pause(3000)
  }
  assert.equal(client.reader.isEnded, false)
  send?.('three')
  await until(() => client.reader.bytes.includes('data: three'), 'the stream goes on')
})

test('streaming: no timeout of the sender itself is left on, so that idle streams live for more than its 300 s', limit, async t => {
  const timeouts: unknown[] = []
  const scene = await setHttpScene(t, {
    plugin: {
      replyFrom: {
        undici: {
          request (options: Record<string, unknown>, callback: (error: Error) => void) {
            timeouts.push([options.headersTimeout, options.bodyTimeout])
            callback(Object.assign(new Error('not sent'), { code: 'ECONNREFUSED' }))
          },
          destroy () {}
        } as never
      }
    }
  })
  await scene.pod('pod-1', { destinationIds: ['x'] })
  scene.app.get('/d/:id', scene.coordinator.lookupAndProxy({ destinationFrom: r => r.params.id }))
  assert.equal((await scene.ask(toRequest('GET /d/x'))).statusCode, 502)
  assert.deepEqual(timeouts, [[0, 0]])
})

test('streaming: upload and reply run at the same time, chunk by chunk', limit, async t => {
  const { scene, pod } = await setScene(t)
  pod.onHeaders = (response, _request, raw) => {
    response.writeHead(200)
    raw.pipe(response)
    return true
  }
  const client = await scene.client()
  client.write(toRequest('POST /d/x', { 'transfer-encoding': 'chunked' }))
  for (const text of ['first', 'second', 'third']) {
    client.write(`${text.length.toString(16)}\r\n${text}\r\n`)
    await until(() => client.reader.bytes.includes(text), `${text} came back`, 5000)
  }
  client.write('0\r\n\r\n')
  const reply = await client.readReply()
  assert.deepEqual([reply.body.toString(), reply.isComplete], ['firstsecondthird', true])
})

test('streaming: a slow reader holds the pod back on a download of 250 MB, and gets all of it', limit, async t => {
  const { scene, pod } = await setScene(t)
  const size = 250_000_000
  const chunk = Buffer.alloc(1_000_000, 'a')
  let written = 0
  pod.answer = response => {
    response.writeHead(200, { 'content-length': String(size) })
    const write = async (): Promise<void> => {
      for (; written < size; written += chunk.length) if (!response.write(chunk)) await once(response, 'drain')
      response.end()
    }
    write().catch(() => {})
  }
  const client = await scene.client()
  client.socket.removeAllListeners('data')
  client.socket.pause()
  client.write(toRequest('GET /d/x'))
  // The pod comes to a stop when every buffer on the way is full.
  let last = -1
  await until(async () => {
    const isStill = written > 0 && written === last
    last = written
    await pause(500)
    return isStill
  }, 'the pod is held back')
  // What the kernel's socket buffers and the streams hold; far below the size.
  assert.ok(written < 60_000_000, `the pod could write ${written} bytes`)

  const before = process.memoryUsage()
  let most = 0
  let received = 0
  client.socket.on('data', data => {
    received += data.length
    if (received % 5 === 0) most = Math.max(most, process.memoryUsage().arrayBuffers - before.arrayBuffers)
  })
  client.socket.resume()
  await until(() => received > size, 'all of it came', 60_000)
  // Client, application and pod are this process, and what is garbage already counts until it is collected (97 MB seen on Node 24).
  assert.ok(most < size * 0.6, `${most} bytes more were held`)
})

test('streaming: a pod that reads slowly holds the client back on an upload of 250 MB, and gets all of it', limit, async t => {
  const { scene, pod } = await setScene(t)
  const size = 250_000_000
  const chunk = Buffer.alloc(1_000_000, 'a')
  let received = 0
  let go: (() => void) | undefined
  pod.onHeaders = (response, _request, raw) => {
    go = () => raw.on('data', data => { received += data.length }).once('end', () => response.end(String(received)))
    return true
  }
  const client = await scene.client()
  client.write(toRequest('POST /d/x', { 'content-length': String(size) }))
  let written = 0
  const write = async (): Promise<void> => {
    for (; written < size; written += chunk.length) if (!client.socket.write(chunk)) await once(client.socket, 'drain')
  }
  const writing = write()
  await until(() => go !== undefined, 'the pod has the head')
  let last = -1
  await until(async () => {
    const isStill = written === last
    last = written
    await pause(500)
    return isStill
  }, 'the client is held back')
  assert.ok(written < 60_000_000, `the client could write ${written} bytes`)
  go?.()
  const reply = await client.readReply()
  assert.equal(reply.body.toString(), String(size))
  await writing
})
