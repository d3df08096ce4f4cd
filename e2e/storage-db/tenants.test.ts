import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type pg from 'pg'
import { createPool, withTransaction } from '../../examples/storage-db/src/database.ts'
import { catalogueMigrations, latestVersion, migrate, migrateCatalogue, tenantMigrations } from '../../examples/storage-db/src/migrations.ts'
import type { Migration } from '../../examples/storage-db/src/migrations.ts'
import { readPodSettings } from '../../examples/storage-db/src/settings.ts'
import { Tenants } from '../../examples/storage-db/src/tenants.ts'
import { atClose } from '../support/closing.ts'
import { Scene, withResolvers } from './support/scene.ts'

/** A client that waits for its answer. */
const stays = (): boolean => false

/** What two pods know of tenants: each has connections of its own. */
async function openTwo (t: TestContext): Promise<{ scene: Scene, first: Tenants, second: Tenants }> {
  const scene = new Scene(t)
  const [first, second] = [new Tenants(openPool(t, scene, 'pod-1'), scene.schemaPrefix), new Tenants(openPool(t, scene, 'pod-2'), scene.schemaPrefix)]
  await Promise.all([first.prepare(), second.prepare()])
  return { scene, first, second }
}

function openPool (t: TestContext, scene: Scene, memberId: string): pg.Pool {
  const pool = createPool(readPodSettings(scene.environment(memberId)).database, 4, 10_000, () => {})
  atClose(t, () => pool.end())
  return pool
}

test('prepare: ten pods that start at once make one catalogue, with each migration once', async t => {
  const scene = new Scene(t)
  await Promise.all(Array.from({ length: 10 }, (_, i) => new Tenants(openPool(t, scene, `pod-${i}`), scene.schemaPrefix).prepare()))
  const { rows } = await scene.database.query(`SELECT version, name FROM ${scene.schemaPrefix}.migrations ORDER BY version`)
  assert.deepEqual(rows, catalogueMigrations.map(({ version, name }) => ({ version, name })))
})

test('migrateCatalogue: applies what is missing, in order, and leaves what a later version applied', async t => {
  const { scene } = await openTwo(t)
  const pool = openPool(t, scene, 'pod-3')
  const next: Migration[] = [3, 4].map(version => ({
    version, name: `step-${version}`, statements: schema => [version === 3 ? `CREATE TABLE ${schema}.steps (n integer)` : `INSERT INTO ${schema}.steps VALUES (4)`]
  }))
  await withTransaction(pool, client => migrateCatalogue(client, scene.schemaPrefix, [...catalogueMigrations, ...next]))
  await withTransaction(pool, client => migrateCatalogue(client, scene.schemaPrefix))
  const { rows } = await pool.query(`SELECT (SELECT max(version) FROM ${scene.schemaPrefix}.migrations) AS version, (SELECT count(*)::int FROM ${scene.schemaPrefix}.steps) AS steps`)
  assert.deepEqual(rows, [{ version: 4, steps: 1 }])
})

test('migrate: a step that fails takes the whole migration back', async t => {
  const { scene } = await openTwo(t)
  const pool = openPool(t, scene, 'pod-3')
  const broken: Migration[] = [{ version: 3, name: 'broken', statements: schema => [`CREATE TABLE ${schema}.half (n integer)`, 'SELECT 1 / 0'] }]
  await assert.rejects(withTransaction(pool, client => migrate(client, scene.schemaPrefix, broken, 2)), { code: '22012' })
  const { rows } = await pool.query('SELECT to_regclass($1) AS half', [`${scene.schemaPrefix}.half`])
  assert.deepEqual(rows, [{ half: null }])
})

test('create: of 40 callers on two pods one creates, and there is one schema', async t => {
  const { scene, first, second } = await openTwo(t)
  const statuses = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? first : second).create('acme', stays)))
  assert.deepEqual(statuses.filter(status => status === 'created').length, 1)
  assert.deepEqual(new Set(statuses), new Set(['created', 'present']))
  const { rows } = await scene.database.query(`SELECT id, schema, version FROM ${scene.schemaPrefix}.tenants`)
  assert.deepEqual(rows, [{ id: 'acme', schema: scene.schemaOf('acme'), version: latestVersion(tenantMigrations) }])
})

test('create and drop at once on two pods: one after another, and what is left fits together', async t => {
  const { scene, first, second } = await openTwo(t)
  for (let round = 0; round < 5; round++) {
    const results = await Promise.all(Array.from({ length: 12 }, (_, i) => {
      const tenants = i % 3 === 0 ? first : second
      return i % 2 === 0 ? tenants.create('acme', stays) : tenants.drop('acme', stays)
    }))
    const [created, dropped] = [results.filter(result => result === 'created').length, results.filter(result => result === true).length]
    const exists = await first.exists('acme')
    assert.equal(created - dropped, exists ? 1 : 0)
    const { rows } = await scene.database.query('SELECT to_regclass($1) IS NOT NULL AS exists', [`${scene.schemaOf('acme')}.entries`])
    assert.deepEqual(rows, [{ exists }])
    await first.drop('acme', stays)
  }
})

test('open: brings a schema of an earlier version up to date, once for any number of callers', async t => {
  const { scene, first, second } = await openTwo(t)
  // As a pod left it that knew no table of entries yet.
  await scene.database.query(`CREATE SCHEMA ${scene.schemaOf('old')}`)
  await scene.database.query(`INSERT INTO ${scene.schemaPrefix}.tenants (id, schema, version) VALUES ('old', $1, 0)`, [scene.schemaOf('old')])
  await Promise.all(Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? first : second).open('old')))
  const { rows } = await scene.database.query(`SELECT version, to_regclass($1) IS NOT NULL AS exists FROM ${scene.schemaPrefix}.tenants`, [`${scene.schemaOf('old')}.entries`])
  assert.deepEqual(rows, [{ version: latestVersion(tenantMigrations), exists: true }])
  await assert.rejects(first.open('none'), { code: 'STORAGE_TENANT_NOT_FOUND' })
})

test('drop: waits for no transaction that is idle on another pod, and breaks it off', async t => {
  const { scene, first } = await openTwo(t)
  await first.create('acme', stays)
  const idle = await openPool(t, scene, 'pod-9').connect()
  let lost: Error | undefined
  idle.on('error', error => { lost = error })
  await idle.query('BEGIN')
  await idle.query(`INSERT INTO ${scene.schemaOf('acme')}.entries VALUES ('k', 'v', 'text')`)
  assert.equal(await first.drop('acme', stays), true)
  await assert.rejects(idle.query('COMMIT'))
  assert.ok(lost)
  idle.release(true)
  assert.equal(await first.exists('acme'), false)
})

test('drop: leaves a transaction of other software alone, and says that the tenant is busy', async t => {
  const { scene, first } = await openTwo(t)
  await first.create('acme', stays)
  const client = await scene.database.connect()
  await client.query('BEGIN')
  await client.query(`SELECT FROM ${scene.schemaOf('acme')}.entries`)
  await assert.rejects(first.drop('acme', stays), { code: 'STORAGE_TENANT_BUSY', statusCode: 503 })
  await client.query('COMMIT')
  client.release()
  assert.equal(await first.exists('acme'), true)
  assert.equal(await first.drop('acme', stays), true)
})

test('tryAlone: of two pods one runs, the other is told so at once; other tenants are not held up', async t => {
  const { first, second } = await openTwo(t)
  const inside = withResolvers<void>()
  const leave = withResolvers<string>()
  const one = first.tryAlone('acme', async () => {
    inside.resolve()
    return await leave.promise
  })
  await inside.promise
  assert.equal(await second.tryAlone('acme', async () => 'two'), null)
  assert.equal(await first.tryAlone('acme', async () => 'two'), null)
  assert.equal(await second.tryAlone('other', async () => 'two'), 'two')
  leave.resolve('one')
  assert.equal(await one, 'one')
  assert.equal(await second.tryAlone('acme', async () => 'two'), 'two')
})

test('tryAlone: the lock is free again after a task that failed', async t => {
  const { first, second } = await openTwo(t)
  await assert.rejects(first.tryAlone('acme', async () => { throw new Error('no') }), /no/)
  assert.equal(await second.tryAlone('acme', async () => 'two'), 'two')
})

test('create and drop: nothing is done for a client that left while others had the tenant', async t => {
  const { first, second } = await openTwo(t)
  await first.create('acme', stays)
  const inside = withResolvers<void>()
  const leave = withResolvers<void>()
  const held = first.tryAlone('acme', async () => {
    inside.resolve()
    await leave.promise
  })
  await inside.promise
  let hasLeft = false
  const isGone = (): boolean => hasLeft
  const refused = Promise.all([assert.rejects(second.drop('acme', isGone), { code: 'STORAGE_CLIENT_GONE' }), assert.rejects(second.create('acme', isGone), { code: 'STORAGE_CLIENT_GONE' })])
  hasLeft = true
  leave.resolve()
  await held
  await refused
  assert.equal(await first.exists('acme'), true)
})
