import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { readCoordinatorSettings, readPodSettings, SettingsError } from '../../examples/storage-db/src/settings.ts'

const least = { REDIS_URL: 'redis://127.0.0.1:6379', PG_URL: 'postgresql://storage:secret@127.0.0.1:5432/storage', MEMBER_ID: 'pod-1' }

test('readPodSettings: three variables are enough, empty ones count as not set', () => {
  const settings = readPodSettings({ ...least, TTL: '', ADDRESS: '' })
  const { database, ...others } = settings
  assert.deepEqual(others, {
    redisUrl: least.REDIS_URL,
    keyPrefix: 'storage-db',
    host: '127.0.0.1',
    port: 3001,
    cacheTtl: 5000,
    logLevel: 'warn',
    memberId: 'pod-1',
    address: undefined,
    ttl: 10,
    heartbeat: 3333,
    poolMax: 10,
    poolIdle: 30_000,
    transactionIdle: 10_000,
    transactionLife: 60_000,
    transactionsPerTenant: 9,
    fanOutWait: 250,
    fanInCalm: 15_000,
    maxPodsPerTenant: 3,
    drainTimeout: 10_000,
    straysInterval: 60_000
  })
  assert.deepEqual(database, {
    pgUrl: least.PG_URL, schemaPrefix: 'storage', applicationName: 'storage-db pod-1', connectTimeout: 3000, statementTimeout: 5000, abandonedTransactionTimeout: 15_000
  })
})

test('readPodSettings: with one connection a tenant may still have a transaction', () => {
  assert.equal(readPodSettings({ ...least, POOL_MAX: '1' }).transactionsPerTenant, 1)
})

test('readPodSettings: a wrong setting is named, with its rule and what came', () => {
  const wrong = {
    REDIS_URL: '',
    PG_URL: 'mysql://x',
    MEMBER_ID: 'ä',
    ADDRESS: 'pod-1:3001',
    PORT: '65536',
    TTL: '0',
    HEARTBEAT: '6000',
    POOL_MAX: '0',
    POOL_IDLE: '-1',
    TRANSACTION_IDLE: '1.5',
    TRANSACTION_LIFE: '1e3',
    TRANSACTIONS_PER_TENANT: '11',
    FAN_OUT_WAIT: 'soon',
    MAX_PODS_PER_TENANT: '0',
    SCHEMA_PREFIX: 'Storage',
    LOG_LEVEL: 'loud',
    KEY_PREFIX: 'a b',
    CACHE_TTL: '-5'
  }
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(() => readPodSettings({ ...least, [name]: value }), (error: unknown) => error instanceof SettingsError && error.message.startsWith(`Expected ${name} to be `), name)
  }
  for (const HOST of ['0.0.0.0', '0', '::', '::0']) assert.throws(() => readPodSettings({ ...least, HOST }), /Expected ADDRESS to be set when HOST is [0.:]+,/)
})

test('readPodSettings: no message repeats the URL of the database', () => {
  assert.throws(() => readPodSettings({ ...least, PG_URL: 'postgres//storage:secret@db' }), (error: unknown) => error instanceof SettingsError && !error.message.includes('secret'))
})

test('readCoordinatorSettings: one variable is enough', () => {
  assert.deepEqual(readCoordinatorSettings({ REDIS_URL: least.REDIS_URL }), {
    redisUrl: least.REDIS_URL, keyPrefix: 'storage-db', host: '127.0.0.1', port: 3000, cacheTtl: 5000, logLevel: 'warn', requestTimeout: 10_000
  })
})

test('a process with a wrong setting ends with exit code 2 and one sentence', () => {
  for (const [entry, env] of [['pod', { ...least, TTL: 'long' }], ['coordinator', { ...least, REQUEST_TIMEOUT: '0' }]] as const) {
    const file = fileURLToPath(new URL(`../../examples/storage-db/dist/${entry}.js`, import.meta.url))
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], { env, encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([status, stdout], [2, ''])
    assert.match(stderr, /^Expected (TTL|REQUEST_TIMEOUT) to be [^\n]*\n$/)
  }
})

test('a process that cannot start says why in one line: exit code 2 for a setting, 1 for what is not there', () => {
  const pod = fileURLToPath(new URL('../../examples/storage-db/dist/pod.js', import.meta.url))
  const run = (env: Record<string, string>): { status: number | null, stderr: string } =>
    spawnSync(process.execPath, [pod], { env: { ...least, ...env }, encoding: 'utf8', timeout: 60_000 })
  const noStore = run({ REDIS_URL: 'http://127.0.0.1:6379' })
  assert.equal(noStore.status, 2)
  assert.match(noStore.stderr, /^Expected redis to be [^\n]*\n$/)
  const noDatabase = run({ PG_URL: 'postgresql://storage:secret@127.0.0.1:1/storage' })
  assert.equal(noDatabase.status, 1)
  assert.match(noDatabase.stderr, /^PostgreSQL cannot be reached[^\n]*: connect ECONNREFUSED 127\.0\.0\.1:1\n$/)
})
