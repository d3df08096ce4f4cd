import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { inspect } from 'node:util'
import { Redis } from 'iovalkey'
import { isCoordinatorError, Member, Registry } from '../src/index.ts'
import type { CoordinatorError } from '../src/index.ts'
import { allFail, everyMemberCall, everyRegistryCall, failure } from './support/every-call.ts'
import { startOwnStore } from './support/own-store.ts'
import { setScene, until } from './support/store.ts'

const password = 'p:@/?#[]%25%&=+ "\'<>{}|^`~;,$!*()\\é€𝄞'

/** Registers a pod and claims a destination through the URL; returns the names of the keys that are in each database afterwards. */
async function claimThrough (t: TestContext, url: string, direct: Redis): Promise<Map<number, string[]>> {
  const scene = setScene(t, url, 'p')
  await scene.liveMember('pod-1')
  const resolved = await scene.registry().resolveDestination('tenant-1', { claimOnMiss: true })
  assert.equal(resolved?.memberId, 'pod-1')
  const found = new Map<number, string[]>()
  for (let db = 0; db < 4; db++) {
    await direct.select(db)
    const names = await direct.keys('*')
    if (names.length > 0) found.set(db, names.filter(name => !name.endsWith(':features')).sort())
  }
  return found
}

const claimed = ['p:destination:tenant-1', 'p:member:pod-1', 'p:members']

for (const scheme of ['redis', 'valkey']) {
  test(`a ${scheme}: URL with a database number keeps all keys in that database (G07)`, async t => {
    const store = await startOwnStore(t)
    const direct = new Redis(store.url)
    t.after(() => direct.disconnect())

    const found = await claimThrough(t, `${scheme}://127.0.0.1:${store.port}/3`, direct)

    assert.deepEqual(found, new Map([[3, claimed]]))
  })

  test(`a ${scheme}: URL with an ACL user whose percent-encoded password is full of signs connects as that user (G07)`, async t => {
    const store = await startOwnStore(t)
    const direct = new Redis(store.url)
    t.after(() => direct.disconnect())
    await direct.call('ACL', 'SETUSER', 'pod@:/%', 'on', `>${password}`, '~*', '&*', '+@all')
    await direct.call('ACL', 'SETUSER', 'default', 'off')
    const user = encodeURIComponent('pod@:/%')

    const found = await claimThrough(t, `${scheme}://${user}:${encodeURIComponent(password)}@127.0.0.1:${store.port}/2`, direct)

    assert.deepEqual(found, new Map([[2, claimed]]))
  })
}

for (const [form, write] of [
  ['the bare path', (path: string) => path],
  ['a unix:// URL', (path: string) => `unix://${path}`],
  ['a unix: URL without an authority', (path: string) => `unix:${path}`]
] as const) {
  test(`the socket of a store on this machine is reached by ${form} (G07)`, async t => {
    const folder = mkdtempSync(join(tmpdir(), 'coordinator-socket-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'valkey.sock')
    const store = await startOwnStore(t, ['--unixsocket', path])
    const direct = new Redis(store.url)
    t.after(() => direct.disconnect())

    const found = await claimThrough(t, write(path), direct)

    assert.deepEqual(found, new Map([[0, claimed]]))
    assert.match(await direct.call('CLIENT', 'LIST') as string, new RegExp(`${path}:0`))
  })
}

test('a unix: URL carries a percent-encoded path and a database number, redisOptions the user and password (G07)', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator socket%20-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'valkey.sock')
  const store = await startOwnStore(t, ['--unixsocket', path])
  const scene = setScene(t, store.url, 'p')
  await scene.raw.call('ACL', 'SETUSER', 'pod', 'on', `>${password}`, '~*', '&*', '+@all')

  await scene.liveMember('pod-1', { redis: `unix://${encodeURI(path)}?db=2`, redisOptions: { username: 'pod', password } })

  assert.match(await scene.raw.call('CLIENT', 'LIST') as string, / db=2 .* user=pod /)
  assert.deepEqual(await scene.keys(), [])
  await scene.raw.select(2)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
})

test('the db of redisOptions holds where the URL names none (G07)', async t => {
  const store = await startOwnStore(t)
  const scene = setScene(t, store.url, 'p')
  await scene.liveMember('pod-1', { redisOptions: { db: 2 } })

  assert.deepEqual(await scene.keys(), [])
  await scene.raw.select(2)
  assert.deepEqual(await scene.keys(), ['features', 'member:pod-1', 'members'])
})

const secret = 'hunter2-secret'

for (const url of [
  `redis://user:${secret}%@127.0.0.1:6379`,
  `redis://user:${secret}@127.0.0.1:port`,
  `redis://user:${secret}/x@127.0.0.1:6379`,
  `redis://user:42/${secret}@127.0.0.1:6379`,
  `redis://user:${secret}#x@127.0.0.1:6379`,
  `redis://user:${secret}@`,
  `redis://user:${secret}@127.0.0.1:6379/database`,
  `redis://user:${secret}@127.0.0.1:6379/1/2`,
  `mongodb://user:${secret}@127.0.0.1:6379`,
  `user:${secret}@127.0.0.1:6379`,
  `${secret}@127.0.0.1`,
  `unix://user:${secret}@`
]) {
  test(`the refusal of the URL ${url.replaceAll(secret, '***')} does not print the password (G07)`, () => {
    for (const construct of [
      () => new Registry({ redis: url }),
      () => new Member({ redis: url, memberId: 'pod-1', address: 'http://pod-1.test:3000' })
    ]) {
      assert.throws(construct, error => {
        assert.ok(isCoordinatorError(error, 'PLT_COORDINATOR_INVALID_OPTION'), inspect(error))
        assert.match(error.message, /^Expected redis to be /)
        assert.doesNotMatch(inspect(error, { depth: Infinity, showHidden: true }), new RegExp(secret))
        return true
      })
    }
  })
}

test('a password that the store refuses is not printed by any error that the application is told of (G07)', async t => {
  const store = await startOwnStore(t)
  const reported: CoordinatorError[] = []
  const scene = setScene(t, store.url, 'p')
  await scene.raw.config('SET', 'requirepass', 'another')
  const registry = scene.registry({ redis: `redis://:${secret}@127.0.0.1:${store.port}`, onError: error => { reported.push(error) } })

  const error = await registry.listLiveMembers().then(() => assert.fail('listed'), (error: unknown) => error)

  assert.ok(isCoordinatorError(error))
  await until(() => reported.length > 0, 'the refusal was reported')
  assert.match(inspect(reported), /WRONGPASS/)
  assert.doesNotMatch(inspect([error, ...reported], { depth: Infinity, showHidden: true }), new RegExp(secret))
})

for (const [name, options] of [
  ['a URL', (url: string) => ({ redis: `${url}/99` })], ['redisOptions', (url: string) => ({ redis: url, redisOptions: { db: 99 } })]
] as const) {
  test(`a database that the server does not have, by ${name}, is refused by every call, and nothing is written into another one (G07)`, async t => {
    const store = await startOwnStore(t)
    const scene = setScene(t, store.url, 'p')
    const registry = scene.registry({ ...options(store.url), memberIndex: true })
    const member = scene.member('pod-1', { ...options(store.url), memberIndex: true })

    await failure(2000, 'register', member.register(), 'PLT_COORDINATOR_STORE_REFUSED')
    const errors = await allFail(2000, { ...everyRegistryCall(registry), ...everyMemberCall(member) }, 'PLT_COORDINATOR_STORE_REFUSED')
    assert.equal(await member.heartbeat(), false)
    await failure(2000, 'again', registry.resolveDestination('tenant-1', { claimOnMiss: true }), 'PLT_COORDINATOR_STORE_REFUSED')

    for (const error of Object.values(errors)) assert.equal(error.message, 'Valkey has no database 99')
    assert.deepEqual(await scene.raw.keys('*'), [])
    assert.doesNotMatch(await scene.raw.info('keyspace'), /db\d/)
  })
}
