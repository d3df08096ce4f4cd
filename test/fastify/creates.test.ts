import assert from 'node:assert/strict'
import test from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { setCreate } from '../support/creates.ts'
import { toRequest } from '../support/raw-http.ts'

const json = { 'content-type': 'application/json' }

for (const status of [200, 201, 202, 203, 206, 207, 226, 299]) {
  test(`creates: a reply of ${status} is passed on and its id is bound to the pod that gave it (G15)`, async t => {
    const { scene, pod, create, bound } = await setCreate(t, status, { ...json, location: '/d/new' }, '{ "id": "new", "n": 1.0 }')
    const reply = await create()
    assert.equal(reply.statusCode, status)
    assert.equal(reply.body.toString(), '{ "id": "new", "n": 1.0 }')
    assert.deepEqual(reply.values('location'), ['/d/new'])
    assert.equal(pod.requests[0]?.body.toString(), '{ "n": 1.0 }', 'the request is exact too')
    assert.deepEqual([await bound(), await scene.pods('new')], [['new'], ['pod-1']])
    assert.deepEqual(scene.results, ['spawned'])
  })
}

for (const status of [300, 302, 304, 307, 400, 404, 409, 418, 500, 503]) {
  test(`creates: a reply of ${status} is passed on and nothing is bound (G15, G20)`, async t => {
    const { scene, pod, create, bound } = await setCreate(t, status, { ...json, location: '/else', 'retry-after': '0' }, status === 304 ? '' : '{ "id": "new" }')
    const reply = await create()
    assert.equal(reply.statusCode, status)
    assert.equal(reply.body.toString(), status === 304 ? '' : '{ "id": "new" }')
    assert.deepEqual([reply.values('location'), reply.values('retry-after')], [['/else'], ['0']])
    assert.deepEqual(await bound(), [])
    assert.deepEqual(scene.results, ['upstream_error'])
    assert.equal(pod.requests.length, 1, 'asked once')
  })
}

for (const [expectedStatus, status, isBound] of [[201, 201, true], [201, 200, false], [[200, 202], 202, true], [[200, 202], 201, false]] as const) {
  test(`creates: expectedStatus ${expectedStatus} ${isBound ? 'binds on' : 'does not bind on'} ${status} (G15)`, async t => {
    const { scene, create, bound } = await setCreate(t, status, json, '{"id":"new"}', { expectedStatus })
    const reply = await create()
    assert.deepEqual([reply.statusCode, reply.body.toString()], [status, '{"id":"new"}'])
    assert.deepEqual(await bound(), isBound ? ['new'] : [])
    assert.deepEqual(scene.results, [isBound ? 'spawned' : 'upstream_error'])
  })
}

for (const [what, body, id] of [
  ['a number', '{"id":42}', '42'],
  ['the number 0', '{"id":0}', '0'],
  ['a negative number', '{"id":-7}', '-7'],
  ['the largest exact number', '{"id":9007199254740991}', '9007199254740991'],
  ['a text of 20 digits', '{"id":"12345678901234567890"}', '12345678901234567890'],
  ['a text with signs of other scripts, blanks and colons', '{"id":"ä:b c/😀"}', 'ä:b c/😀'],
  ['a text that looks like a property of all objects', '{"id":"__proto__"}', '__proto__']
] as const) {
  test(`creates: an id that is ${what} is bound as text`, async t => {
    const { scene, create, bound } = await setCreate(t, 201, json, body)
    const reply = await create()
    assert.deepEqual([reply.statusCode, reply.body.toString()], [201, body])
    assert.deepEqual(await bound(), [id])
    assert.deepEqual(scene.results, ['spawned'])
  })
}

for (const [what, body] of [
  ['none', '{"other":1}'],
  ['null', '{"id":null}'],
  ['an empty text', '{"id":""}'],
  ['an object', '{"id":{"a":1}}'],
  ['an array', '{"id":["a"]}'],
  ['true', '{"id":true}'],
  ['a number of 20 digits, which parsing rounded', '{"id":12345678901234567890}'],
  ['a number too large for any', '{"id":1e999}'],
  ['half a character', '{"id":"\\ud800"}'],
  ['a text longer than an id may be', JSON.stringify({ id: 'x'.repeat(200_000) })]
] as const) {
  test(`creates: where the id is ${what}, the reply passes whole and nothing is bound`, async t => {
    const { scene, create, bound, warnings } = await setCreate(t, 201, { ...json, location: '/d/?' }, body)
    const reply = await create()
    assert.deepEqual([reply.statusCode, reply.values('location')], [201, ['/d/?']])
    assert.ok(reply.body.equals(Buffer.from(body)))
    assert.deepEqual(await bound(), [])
    assert.deepEqual(scene.results, ['upstream_error'])
    assert.equal(warnings().length >= 1, true, 'the log tells of it')
  })
}

for (const [what, headers, body] of [
  ['text', { 'content-type': 'text/plain' }, Buffer.from('created: new')],
  ['empty', {}, Buffer.alloc(0)],
  ['broken JSON', json, Buffer.from('{"id":"new"')],
  ['binary', { 'content-type': 'application/octet-stream' }, Buffer.from('00ff8041', 'hex')],
  ['JSON null', json, Buffer.from('null')],
  ['gzip by its header and not by its bytes', { ...json, 'content-encoding': 'gzip' }, Buffer.from('{"id":"new"}')],
  ['of a coding nobody knows', { ...json, 'content-encoding': 'x-own' }, Buffer.from('ff', 'hex')]
] as const) {
  test(`creates: a reply that is ${what} passes whole, with its type, and nothing is bound (G01)`, async t => {
    const { scene, create, bound } = await setCreate(t, 201, { ...headers, 'content-length': String(body.length) }, body)
    const reply = await create()
    assert.equal(reply.statusCode, 201)
    assert.deepEqual(reply.body, body)
    assert.deepEqual(reply.values('content-type'), 'content-type' in headers ? [headers['content-type']] : [])
    assert.deepEqual(reply.values('content-encoding'), 'content-encoding' in headers ? [headers['content-encoding']] : [])
    assert.deepEqual(reply.values('content-length'), [String(body.length)])
    assert.deepEqual(await bound(), [])
    assert.deepEqual(scene.results, ['upstream_error'])
  })
}

test('creates: a bare 204 is passed on without a body, and nothing is bound', async t => {
  const { scene, create, bound } = await setCreate(t, 204, { 'x-made': 'y' }, '')
  const reply = await create()
  assert.deepEqual([reply.statusCode, reply.body.length, reply.values('x-made'), reply.values('content-type')], [204, 0, ['y'], []])
  assert.deepEqual(await bound(), [])
  assert.deepEqual(scene.results, ['upstream_error'])
})

for (const [coding, encode] of [['gzip', gzipSync], ['GZIP', gzipSync], ['x-gzip', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync], ['identity', Buffer.from]] as const) {
  test(`creates: a reply in ${coding} is read for its id, and not a byte of it is touched`, async t => {
    const bytes = encode(Buffer.from('{ "id": "new", "n": 12345678901234567890 }'))
    const { scene, create, bound } = await setCreate(t, 201, { ...json, 'content-encoding': coding, etag: '"1"' }, bytes)
    const reply = await create()
    assert.equal(reply.statusCode, 201)
    assert.deepEqual(reply.body, bytes)
    assert.deepEqual([reply.values('content-encoding'), reply.values('content-type'), reply.values('etag')], [[coding], ['application/json'], ['"1"']])
    assert.deepEqual([await bound(), scene.results], [['new'], ['spawned']])
  })
}

test('creates: a reply in chunks, of a type that is not JSON by name, is read for its id', async t => {
  const { scene, pod, create, bound } = await setCreate(t, 201, {}, '')
  pod.answer = response => {
    response.writeHead(201, { 'content-type': 'text/plain' })
    response.write('{"id"')
    response.end(':"new"}')
  }
  const reply = await create()
  assert.deepEqual([reply.statusCode, reply.body.toString()], [201, '{"id":"new"}'])
  assert.deepEqual([await bound(), scene.results], [['new'], ['spawned']])
})

test('creates: registerIdFrom gets the status, the headers and the request', async t => {
  const seen: unknown[] = []
  const { create, bound } = await setCreate(t, 202, { ...json, location: '/d/from-header' }, '{}', {
    registerIdFrom: (body, { statusCode, headers, request }) => {
      seen.push(body, statusCode, request.method, request.url)
      return String(headers.location).slice('/d/'.length)
    }
  })
  assert.equal((await create()).statusCode, 202)
  assert.deepEqual(seen, [{}, 202, 'POST', '/d'])
  assert.deepEqual(await bound(), ['from-header'])
})

test('creates: two Set-Cookie and two Link stay two, and hop-by-hop headers stop (G02)', async t => {
  const { create, bound } = await setCreate(t, 201, { ...json, 'set-cookie': ['a=1', 'b=2'], link: ['</a>', '</b>'], connection: 'X-Hop', 'x-hop': '1', 'keep-alive': 'timeout=9' }, '{"id":"new"}')
  const reply = await create()
  assert.deepEqual(reply.values('set-cookie'), ['a=1', 'b=2'])
  assert.deepEqual(reply.values('link').join(', '), '</a>, </b>')
  assert.deepEqual([reply.values('x-hop'), reply.values('keep-alive').includes('timeout=9')], [[], false])
  assert.deepEqual(await bound(), ['new'])
})

test('creates: 50 at once over two pods bind each id to the pod that gave it', async t => {
  const { scene, pod } = await setCreate(t, 201, json, '')
  let count = 0
  const answer = (name: string): typeof pod.answer => response => { response.writeHead(201, json).end(JSON.stringify({ id: `${name}-${++count}` })) }
  pod.answer = answer('pod-1')
  const other = await scene.pod('pod-2', { answer: answer('pod-2') })
  const replies = await Promise.all(Array.from({ length: 50 }, () => scene.ask(toRequest('POST /d'))))
  const ids = replies.map(({ body }) => (JSON.parse(body.toString()) as { id: string }).id)
  assert.equal(new Set(ids).size, 50)
  for (const id of ids) assert.deepEqual(await scene.pods(id), [id.slice(0, 5)])
  assert.deepEqual([pod.requests.length, other.requests.length], [25, 25], 'the strategy spreads them')
})
