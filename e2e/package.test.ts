import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const storeUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'

// The tarball, installed into an empty folder as a user would.
let folder = ''

before(async () => {
  assert.ok(existsSync(join(root, 'dist/index.js')), 'npm run build comes first')
  folder = mkdtempSync(join(tmpdir(), 'coordinator-package-'))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  await run('npm', ['install', '--no-audit', '--no-fund', join(folder, filename)], { cwd: folder })
})

after(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a module in the consumer's folder and parses what it prints. */
async function runConsumer (source: string): Promise<unknown> {
  writeFileSync(join(folder, 'consumer.js'), source)
  const { stdout, stderr } = await run(process.execPath, ['consumer.js'], { cwd: folder, timeout: 30_000, env: { ...process.env, REDIS_URL: storeUrl } })
  assert.equal(stderr, '')
  return JSON.parse(stdout)
}

test('the package holds dist, lua, licence and readme alone, and every lua file', async () => {
  const installed = join(folder, 'node_modules/@platformatic/coordinator')
  const { stdout } = await run('npm', ['pack', '--json', '--dry-run'], { cwd: root })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const paths = files.map(file => file.path)

  const others = paths.filter(path => !/^(dist\/index\.js(\.map)?|dist\/.*\.d\.ts|lua\/[a-z-]+\.lua|package\.json|LICENSE|README\.md|CHANGELOG\.md)$/.test(path))
  assert.deepEqual(others, [])
  for (const name of ['claim', 'resolve', 'heartbeat', 'bind', 'prune']) assert.ok(existsSync(join(installed, `lua/${name}.lua`)), name)
  const { version, license, type } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  assert.deepEqual({ version, license, type }, { version: '0.5.0', license: 'Apache-2.0', type: 'module' })
})

test('the package exports what the contract names, and importing it loads neither Fastify nor undici', async () => {
  const found = await runConsumer(`
    import { createRequire } from 'node:module'
    import * as coordinator from '@platformatic/coordinator'
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter(path => /node_modules\\/(fastify|undici|@fastify\\/reply-from)\\//.test(path))
    console.log(JSON.stringify({ names: Object.keys(coordinator).sort(), loaded }))
  `) as { names: string[], loaded: string[] }

  for (const name of ['default', 'coordinatorPlugin', 'exactBodies', 'lookupAndDeregister', 'lookupAndProxy', 'lookupLockAndProxy', 'pickAndRegister', 'proxyVia', 'CoordinatorError', 'Member', 'Registry', 'createStrategy', 'diagnosticsChannels', 'isCoordinatorError']) {
    assert.ok(found.names.includes(name), name)
  }
  assert.deepEqual(found.loaded, [])
})

test('the package works against a store: a pod registers, a caller claims, resolves, fails over, and the process ends by itself', async () => {
  const keyPrefix = `test-${randomBytes(6).toString('hex')}`
  const found = await runConsumer(`
    import { Member, Registry } from '@platformatic/coordinator'
    const options = { redis: process.env.REDIS_URL, keyPrefix: '${keyPrefix}', memberIndex: true }
    const members = ['pod-1', 'pod-2'].map(memberId => new Member({ ...options, memberId, address: \`http://\${memberId}.local:3000\`, ttl: 30, getLoad: () => 0.5 }))
    const registry = new Registry({ ...options, strategy: 'least-loaded' })
    await members[0].register()
    const first = await registry.resolveDestination('tenant', { claimOnMiss: true })
    await members[0].registerLock('lock', 'tenant', { isolationLevel: 'serializable' })
    const lock = await registry.resolveLock('lock')
    await members[1].register()
    await members[0].deregister()
    registry.invalidateCache('tenant')
    const second = await registry.resolveDestination('tenant', { reassignOrphans: true })
    const live = await registry.listLiveMembers()
    const owned = await registry.listOwned('pod-2')
    const isForgotten = await registry.deregisterDestination('tenant')
    await members[1].deregister()
    await Promise.all([...members, registry].map(each => each.close()))
    console.log(JSON.stringify({ first, lock, second, live, owned, isForgotten }))
  `)

  assert.deepEqual(found, {
    first: { address: 'http://pod-1.local:3000', memberId: 'pod-1', reassigned: false },
    lock: { address: 'http://pod-1.local:3000', memberId: 'pod-1' },
    second: { address: 'http://pod-2.local:3000', memberId: 'pod-2', reassigned: true, previous: ['pod-1'] },
    live: [{ memberId: 'pod-2', address: 'http://pod-2.local:3000', load: 0.5, draining: false }],
    owned: ['tenant'],
    isForgotten: true
  })
})

test('the types of the package resolve for a consumer, and refuse what is wrong', async () => {
  writeFileSync(join(folder, 'consumer.ts'), `
    import { createStrategy, isCoordinatorError, Member, Registry } from '@platformatic/coordinator'
    import type { AllocationStrategy, MemberInfo, ResolvedDestination } from '@platformatic/coordinator'

    export async function pod (): Promise<MemberInfo[]> {
      const member = new Member({
        redis: 'redis://valkey:6379', memberId: 'pod-1', address: 'http://pod-1.local:3000', keyPrefix: 'myservice', ttl: 30, getLoad: () => 3
      })
      await member.register()
      const heartbeat = setInterval(() => member.heartbeat(), 10_000)
      heartbeat.unref()
      await member.addToDestination('d')
      await member.removeFromDestination('d')
      await member.registerLock('lock', 'd', { isolationLevel: 'serializable' })
      await member.unregisterLock('lock')
      const peers = await member.listPeerLoad()
      const owned: string[] = await member.listOwned()
      await member.setDraining(owned.length > 0)
      clearInterval(heartbeat)
      await member.deregister()
      await member.close()
      return peers
    }

    const pinned: AllocationStrategy = {
      pick (candidates: MemberInfo[], ctx: { destinationId?: string }): MemberInfo | null {
        return ctx.destinationId === 'vip' ? candidates[0] ?? null : null
      }
    }

    export async function caller (): Promise<ResolvedDestination | null> {
      const registry = new Registry({ redis: 'redis://valkey:6379', keyPrefix: 'myservice', strategy: 'least-loaded', cache: { ttl: 5000, max: 10_000 } })
      const custom = new Registry({ redis: 'redis://valkey:6379', redisOptions: { db: 1 }, strategy: pinned, cache: false, memberIndex: true })
      const wrapped = new Registry({ redis: 'redis://valkey:6379', strategy: { pick: (candidates, ctx) => createStrategy('random').pick(candidates, ctx) } })
      const resolved = await registry.resolveDestination('d', { claimOnMiss: true, reassignOrphans: true })
      if (resolved) {
        const text: string = resolved.address + resolved.memberId
        const flag: boolean = resolved.reassigned
        const previous: string[] | undefined = resolved.previous
        console.log(text, flag, previous)
      }
      const lock: { address: string, memberId: string } | null = await registry.resolveLock('lock')
      const picked: MemberInfo | null = await registry.pickMember({ destinationId: 'd' })
      const isAdded: boolean = await registry.addPodToDestination('d', 'pod-1')
      const isRemoved: boolean = await registry.removePodFromDestination('d', 'pod-1')
      const isBound: boolean = await registry.hasBinding('d')
      const live: { memberId: string, address: string, load: number, draining: boolean }[] = await registry.listLiveMembers()
      const owned: string[] = await custom.listOwned('pod-1')
      registry.invalidateCache('d')
      console.log(lock, picked, isAdded, isRemoved, isBound, live, owned, await registry.readBinding('d'))
      await registry.deregisterDestination('d').catch(error => { if (isCoordinatorError(error)) console.log(error.code, error.statusCode) })
      await Promise.all([registry.close(), custom.close(), wrapped.close()])
      return resolved
    }

    // @ts-expect-error no redis
    export const without = new Registry({ keyPrefix: 'myservice' })
    // @ts-expect-error no such strategy
    export const wrong = new Registry({ redis: 'redis://valkey:6379', strategy: 'fastest' })
    // @ts-expect-error no address
    export const half = new Member({ redis: 'redis://valkey:6379', memberId: 'pod-1' })
  `)
  await run('npm', ['install', '--no-audit', '--no-fund', '--save-dev', '@types/node@20'], { cwd: folder })
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', 'consumer.ts']

  // The types of the plugin are Fastify's: who does not have it lets the types of libraries be, as most do.
  await run(process.execPath, [compiler, '--skipLibCheck', ...options], { cwd: folder }).catch((error: { stdout: string }) => assert.fail(error.stdout))
  await run('npm', ['install', '--no-audit', '--no-fund', 'fastify@5'], { cwd: folder })
  await run(process.execPath, [compiler, ...options], { cwd: folder }).catch((error: { stdout: string }) => assert.fail(error.stdout))
})

test('the plugin of the package passes a request on, with Fastify beside it', async () => {
  await run('npm', ['install', '--no-audit', '--no-fund', 'fastify@5'], { cwd: folder })
  const found = await runConsumer(`
    import { createServer } from 'node:http'
    import { once } from 'node:events'
    import Fastify from 'fastify'
    import coordinatorPlugin, { Member } from '@platformatic/coordinator'
    const options = { redis: process.env.REDIS_URL, keyPrefix: 'test-${randomBytes(6).toString('hex')}' }
    const pod = createServer((request, response) => response.end('pod got ' + request.url)).listen(0, '127.0.0.1')
    await once(pod, 'listening')
    const member = new Member({ ...options, memberId: 'pod-1', address: 'http://127.0.0.1:' + pod.address().port })
    await member.register()
    const app = Fastify()
    await app.register(coordinatorPlugin, options)
    app.get('/d/:id', app.coordinator.lookupAndProxy({ destinationFrom: request => request.params.id, claimOnMiss: true }))
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const response = await fetch(url + '/d/x?a=%2F')
    const text = await response.text()
    await app.coordinator.registry.deregisterDestination('x')
    await app.close()
    await member.deregister()
    await member.close()
    pod.close()
    console.log(JSON.stringify({ status: response.status, text }))
  `)

  assert.deepEqual(found, { status: 200, text: 'pod got /d/x?a=%2F' })
})
