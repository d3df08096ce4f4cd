// The settings of both processes: read from the environment once, checked, and never looked up again. A wrong one ends the process with
// exit code 2 and a sentence that names it, before anything is opened.

export interface StoreSettings {
  readonly redisUrl: string
  readonly keyPrefix: string
  readonly host: string
  readonly port: number
  /** Milliseconds a coordinator may go by a binding it has read. A pod needs to know it to stay until none can name it any more. */
  readonly cacheTtl: number
  readonly logLevel: string
}

export interface CoordinatorSettings extends StoreSettings {
  /** Milliseconds a pod gets for an answer; then the client is told 504. */
  readonly requestTimeout: number
}

/** What it takes to reach PostgreSQL. */
export interface DatabaseSettings {
  readonly pgUrl: string
  /** Starts the name of every schema of this installation. */
  readonly schemaPrefix: string
  /** Seen in pg_stat_activity. */
  readonly applicationName: string
  /** Milliseconds to wait for a connection, whether for a new one or for one that is in use. */
  readonly connectTimeout: number
  /** Milliseconds one statement may take. */
  readonly statementTimeout: number
  /** Milliseconds after which PostgreSQL itself ends a transaction that nobody talks to. */
  readonly abandonedTransactionTimeout: number
}

export interface PodSettings extends StoreSettings {
  readonly memberId: string
  /** Undefined: the address it listens on. */
  readonly address: string | undefined
  /** Seconds the record outlives its last heartbeat. */
  readonly ttl: number
  readonly heartbeat: number
  readonly database: DatabaseSettings
  /** Connections of one tenant's pool. */
  readonly poolMax: number
  /** Milliseconds after which an idle connection, and an unused pool, is closed. */
  readonly poolIdle: number
  readonly transactionIdle: number
  readonly transactionLife: number
  readonly transactionsPerTenant: number
  readonly fanOutWait: number
  readonly fanInCalm: number
  readonly maxPodsPerTenant: number
  readonly drainTimeout: number
  /** Milliseconds between two looks for bindings of tenants that do not exist. */
  readonly straysInterval: number
}

/** A setting that breaks its rule. */
export class SettingsError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']
// The longest time a timer of Node.js can wait.
const maxTime = 2 ** 31 - 1

/** @throws SettingsError */
export function readCoordinatorSettings (env: Environment): CoordinatorSettings {
  return {
    ...readStoreSettings(env, 3000),
    requestTimeout: readInteger(env, 'REQUEST_TIMEOUT', { fallback: 10_000, min: 1, max: maxTime, unit: 'milliseconds' })
  }
}

/** @throws SettingsError */
export function readPodSettings (env: Environment): PodSettings {
  const store = readStoreSettings(env, 3001)
  const time = (name: string, fallback: number, min = 1): number => readInteger(env, name, { fallback, min, max: maxTime / 2, unit: 'milliseconds' })

  // It becomes a header of every reply and a name in pg_stat_activity.
  const memberId = readText(env, 'MEMBER_ID', undefined, /^[\x21-\x7e]{1,48}$/, '1 to 48 visible ASCII characters')
  const address = read(env, 'ADDRESS')
  if (address !== undefined && !/^https?:\/\/[^/]/.test(address)) throw new SettingsError(`Expected ADDRESS to be a URL of scheme http or https, got ${address}`)
  if (address === undefined && /^[0.:]+$/.test(store.host)) {
    throw new SettingsError(`Expected ADDRESS to be set when HOST is ${store.host}, since no coordinator can reach a pod under that address`)
  }
  const ttl = readNumber(env, 'TTL', { fallback: 10, min: 0.1, max: 86_400, unit: 'seconds' })
  const heartbeat = readInteger(env, 'HEARTBEAT', { fallback: Math.max(1, Math.floor(ttl * 1000 / 3)), min: 1, max: ttl * 1000 / 2, unit: 'milliseconds (at most half of TTL)' })
  const poolMax = readInteger(env, 'POOL_MAX', { fallback: 10, min: 1, max: 1000, unit: 'connections' })
  const transactionIdle = time('TRANSACTION_IDLE', 10_000)

  return {
    ...store,
    memberId,
    address,
    ttl,
    heartbeat,
    database: {
      pgUrl: readDatabaseUrl(env),
      schemaPrefix: readText(env, 'SCHEMA_PREFIX', 'storage', /^[a-z][a-z0-9_]{0,23}$/, '1 to 24 lower-case letters, digits and underscores, a letter first'),
      applicationName: `storage-db ${memberId}`,
      connectTimeout: time('CONNECT_TIMEOUT', 3000),
      statementTimeout: time('STATEMENT_TIMEOUT', 5000),
      abandonedTransactionTimeout: transactionIdle + 5000
    },
    poolMax,
    poolIdle: time('POOL_IDLE', 30_000),
    transactionIdle,
    transactionLife: time('TRANSACTION_LIFE', 60_000),
    transactionsPerTenant: readInteger(env, 'TRANSACTIONS_PER_TENANT', { fallback: Math.max(1, poolMax - 1), min: 1, max: poolMax, unit: 'transactions (at most POOL_MAX)' }),
    fanOutWait: time('FAN_OUT_WAIT', 250),
    fanInCalm: time('FAN_IN_CALM', 15_000),
    maxPodsPerTenant: readInteger(env, 'MAX_PODS_PER_TENANT', { fallback: 3, min: 1, max: 1000, unit: 'pods' }),
    drainTimeout: time('DRAIN_TIMEOUT', 10_000, 0),
    straysInterval: time('STRAYS_INTERVAL', 60_000)
  }
}

function readStoreSettings (env: Environment, port: number): StoreSettings {
  const redisUrl = read(env, 'REDIS_URL')
  if (redisUrl === undefined) throw new SettingsError('Expected REDIS_URL to be set, for instance to redis://127.0.0.1:6379')
  const logLevel = read(env, 'LOG_LEVEL') ?? 'warn'
  if (!logLevels.includes(logLevel)) throw new SettingsError(`Expected LOG_LEVEL to be one of ${logLevels.join(', ')}, got ${logLevel}`)
  return {
    redisUrl,
    keyPrefix: readText(env, 'KEY_PREFIX', 'storage-db', /^[\x21-\x7e]{1,256}$/, '1 to 256 visible ASCII characters'),
    host: read(env, 'HOST') ?? '127.0.0.1',
    port: readInteger(env, 'PORT', { fallback: port, min: 0, max: 65_535, unit: 'port' }),
    cacheTtl: readInteger(env, 'CACHE_TTL', { fallback: 5000, min: 0, max: maxTime / 2, unit: 'milliseconds' }),
    logLevel
  }
}

function readDatabaseUrl (env: Environment): string {
  const url = read(env, 'PG_URL')
  // The text may hold a password, so no message repeats it.
  if (url === undefined || !URL.canParse(url) || !/^postgres(ql)?:$/.test(new URL(url).protocol)) {
    throw new SettingsError('Expected PG_URL to be set to a URL such as postgresql://user:password@127.0.0.1:5432/database')
  }
  return url
}

/** An empty variable counts as one that is not set, as Compose files write them. */
function read (env: Environment, name: string): string | undefined {
  const text = env[name]
  return text === '' ? undefined : text
}

function readText (env: Environment, name: string, fallback: string | undefined, pattern: RegExp, rule: string): string {
  const text = read(env, name) ?? fallback
  if (text === undefined) throw new SettingsError(`Expected ${name} to be set: ${rule}`)
  if (!pattern.test(text)) throw new SettingsError(`Expected ${name} to be ${rule}, got ${text}`)
  return text
}

interface Bounds {
  readonly fallback: number
  readonly min: number
  readonly max: number
  readonly unit: string
}

function readNumber (env: Environment, name: string, { fallback, min, max, unit }: Bounds): number {
  const text = read(env, name)
  if (text === undefined) return fallback
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN
  if (!(number >= min && number <= max)) throw new SettingsError(`Expected ${name} to be a number of ${unit} from ${min} to ${max}, got ${text}`)
  return number
}

function readInteger (env: Environment, name: string, bounds: Bounds): number {
  const max = Math.floor(bounds.max)
  const number = readNumber(env, name, { ...bounds, max })
  if (!Number.isInteger(number)) throw new SettingsError(`Expected ${name} to be a whole number of ${bounds.unit} from ${bounds.min} to ${max}, got ${number}`)
  return number
}
