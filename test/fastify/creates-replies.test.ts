import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import { setCreate } from '../support/creates.ts'
import { toRequest } from '../support/raw-http.ts'
import { until } from '../support/store.ts'

const json = { 'content-type': 'application/json' }

for (const [what, options] of [
  ['registerIdFrom', { registerIdFrom: () => { throw new Error('Thrown by the test') } }],
  ['registerIdFrom, with what is no error,', { registerIdFrom: () => { throw undefined } }] // eslint-disable-line no-throw-literal
] as const) {
  test(`creates: ${what} throws: the reply passes whole, nothing is bound, the next request is served (G01)`, async t => {
    const { scene, create, bound, warnings } = await setCreate(t, 201, json, '{ "id": "new" }', options)
    for (const each of [1, 2]) {
      const reply = await create()
      assert.deepEqual([reply.statusCode, reply.body.toString(), reply.values('content-type')], [201, '{ "id": "new" }', ['application/json']], String(each))
    }
    assert.deepEqual(await bound(), [])
    assert.deepEqual(scene.results, ['upstream_error', 'upstream_error'])
    assert.ok(warnings().includes('PLT_COORDINATOR_CALLBACK_FAILED'))
  })
}

test('creates: onResult throws: neither the answer nor the binding is lost (G01)', async t => {
  let calls = 0
  const { create, bound, warnings } = await setCreate(t, 201, json, '{ "id": "new" }', {
    onResult: () => {
      calls++
      throw new Error('Thrown by the test')
    }
  })
  const reply = await create()
  assert.deepEqual([reply.statusCode, reply.body.toString()], [201, '{ "id": "new" }'])
  assert.deepEqual([await bound(), calls], [['new'], 1])
  assert.deepEqual(warnings(), ['PLT_COORDINATOR_CALLBACK_FAILED'])
})

for (const [what, options, length, isBound] of [
  ['1 MiB is read', {}, 1024 * 1024, true],
  ['one byte more than 1 MiB is not', {}, 1024 * 1024 + 1, false],
  ['replyLimit bytes are read', { replyLimit: 1000 }, 1000, true],
  ['one byte more than replyLimit is not', { replyLimit: 1000 }, 1001, false]
] as const) {
  test(`creates: of large replies, ${what}; each passes whole`, async t => {
    const body = Buffer.from(JSON.stringify({ id: 'new', filling: '' }).padEnd(length, ' '))
    const { scene, create, bound, warnings } = await setCreate(t, 201, json, body, options)
    const reply = await create()
    assert.equal(reply.statusCode, 201)
    assert.ok(reply.body.equals(body))
    assert.deepEqual(await bound(), isBound ? ['new'] : [])
    assert.deepEqual(scene.results, [isBound ? 'spawned' : 'upstream_error'])
    assert.deepEqual(warnings(), isBound ? [] : ['PLT_COORDINATOR_NOT_BOUND'])
  })
}

test('creates: a reply over the limit streams on while the pod still sends it', async t => {
  const { scene, pod, bound } = await setCreate(t, 201, json, '', { replyLimit: 1000 })
  const bytes = randomBytes(300_000)
  let end: (() => void) | undefined
  pod.answer = response => {
    response.writeHead(201, json)
    response.write(bytes.subarray(0, -1))
    end = () => { response.end(bytes.subarray(-1)) }
  }
  const client = await scene.client()
  client.write(toRequest('POST /d'))
  await until(() => client.reader.bytes.length > bytes.length, 'all but the last byte is with the client')
  end?.()
  const reply = await client.readReply()
  assert.equal(reply.statusCode, 201)
  assert.ok(reply.isComplete && reply.body.equals(bytes))
  assert.deepEqual([await bound(), scene.results], [[], ['upstream_error']])
})

test('creates: a small reply that unpacks to much is not unpacked whole', async t => {
  const bomb = gzipSync(JSON.stringify({ id: 'new', filling: ' '.repeat(40_000_000) }))
  const { scene, create, bound } = await setCreate(t, 201, { ...json, 'content-encoding': 'gzip' }, bomb)
  const reply = await create()
  assert.equal(reply.statusCode, 201)
  assert.ok(reply.body.equals(bomb))
  assert.deepEqual([await bound(), scene.results], [[], ['upstream_error']])
})

test('creates: a reply that is cut in the middle is not told as a success, and nothing is bound', async t => {
  const { scene, pod, bound } = await setCreate(t, 201, json, '')
  pod.answer = (response, _request, raw) => {
    response.writeHead(201, { ...json, 'content-length': '100' })
    response.write('{"id":"new"', () => { raw.socket.destroy() })
  }
  const client = await scene.client()
  client.write(toRequest('POST /d'))
  const reply = await client.readReply().catch(() => undefined)
  assert.ok(reply === undefined || !reply.isComplete || reply.statusCode >= 500, 'seen as a cut or as a failure')
  assert.deepEqual(await bound(), [])
  assert.equal(scene.results.length, 1)
  assert.notEqual(scene.results[0], 'spawned')
  assert.equal(pod.requests.length, 1, 'a create is not sent twice')
})

test('creates: a content-type that rewriteHeaders took away is not put in its place by another', async t => {
  const { create } = await setCreate(t, 201, json, '{ "id": "new" }', { rewriteHeaders: ({ 'content-type': _type, ...headers }) => headers })
  const reply = await create()
  assert.deepEqual([reply.statusCode, reply.body.toString(), reply.values('content-type')], [201, '{ "id": "new" }', []])
})
