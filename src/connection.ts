import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'iovalkey'
import type { RedisOptions } from 'iovalkey'
import { publish } from './diagnostics.ts'
import { CoordinatorError } from './errors.ts'
import { hasHashTag } from './keys.ts'
import type { CheckedStoreOptions } from './options.ts'
import { closedError, replyCode, toCoordinatorError, unavailable, withoutSecrets } from './store-errors.ts'
import type { CommandKind } from './store-errors.ts'
import type { StoreClient } from './types.ts'

const quitTimeoutMs = 1000

interface Subscription {
  readonly listener: (cause: Error) => void
  readonly hearers: Set<(cause: Error) => void>
}

// One 'error' listener a client, however many registries and members share it: thirty of them must not add thirty listeners.
const subscriptions = new WeakMap<StoreClient, Subscription>()

/** A client of iovalkey, opened from a URL or borrowed, on which every command is bounded in time. */
export class Connection {
  readonly client: StoreClient
  /** True when this instance opened the client and closes it. */
  readonly owned: boolean
  readonly #keyPrefix: string
  readonly #timeoutMs: number
  readonly #onError: (error: CoordinatorError) => unknown
  readonly #hear: (cause: Error) => void
  /**
   * Code of the failure the connection had last, such as ECONNREFUSED: iovalkey's own error names only the retries that were used up.
   * Not its message, which holds an address, and may end in an answer to a client.
   */
  #lastFailure: string | undefined
  /** True once a connection stood: what failed before cannot have written. */
  #wasReady = false
  #failureCount = 0
  #selected: Promise<unknown> | undefined
  #pending = 0
  #idle: (() => void) | undefined
  #isClosed = false
  #closing: Promise<void> | undefined

  constructor (options: CheckedStoreOptions) {
    this.#keyPrefix = options.keyPrefix
    this.#timeoutMs = options.storeTimeoutMs
    this.#onError = options.onError
    this.owned = typeof options.redis === 'string'
    if (typeof options.redis !== 'string') refuseClusterWithoutHashTag(options.redis, options.keyPrefix)
    this.client = typeof options.redis === 'string' ? openClient(options.redis, options.redisOptions) : options.redis
    this.#hear = cause => {
      this.#lastFailure = (cause as NodeJS.ErrnoException).code
      this.report(new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `The connection to Valkey failed: ${cause.message}`, withoutSecrets(cause)))
    }
    if (this.owned) {
      this.client.on('error', this.#hear) // for good: it may still speak of its socket while it closes
      this.client.once('ready', () => { this.#wasReady = true })
    } else {
      this.#wasReady = true
      listen(this.client, this.#hear)
    }
  }

  /** The prefix the client itself puts before keys. */
  get clientPrefix (): string {
    return this.client.options.keyPrefix ?? ''
  }

  /** How often the store was found away; when it rises the data may have been lost. */
  get failureCount (): number {
    return this.#failureCount
  }

  /** Tells of a failure that no caller is told of. */
  report (error: CoordinatorError): void {
    publish('error', { keyPrefix: this.#keyPrefix, error })
    // A listener that throws, or is async and rejects, must not take down what it listens to.
    start(async () => await this.#onError(error)).catch(() => {})
  }

  /**
   * Sends a command and waits for its reply, for `storeTimeout` at most: a frozen server, and the offline queue of a client with
   * default options, would keep the caller waiting far longer.
   * @param send may ask whether its caller still waits before it sends a second command: what was given up must not go on
   * @throws PLT_COORDINATOR_UNAVAILABLE, PLT_COORDINATOR_STORE_REFUSED, PLT_COORDINATOR_NO_HASH_TAG, PLT_COORDINATOR_CLOSED
   */
  run<T> (send: (isAwaited: () => boolean) => Promise<T>, kind: CommandKind): Promise<T> {
    if (this.#isClosed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#pending++
      let isSettled = false
      const settle = (): boolean => {
        if (isSettled) return false
        isSettled = true
        clearTimeout(timer)
        if (--this.#pending === 0) this.#idle?.()
        return true
      }
      const fail = (error: CoordinatorError): void => {
        if (error.code === 'PLT_COORDINATOR_UNAVAILABLE') this.#failureCount++
        if (settle()) reject(error)
      }
      const timer = setTimeout(() => fail(unavailable(kind, `no reply within ${this.#timeoutMs} ms`)), this.#timeoutMs)
      start(() => this.#select(() => isSettled ? Promise.reject(new Error('given up')) : send(() => !isSettled))).then(
        reply => {
          this.#lastFailure = undefined
          if (settle()) resolve(reply)
        },
        (failure: unknown) => fail(toCoordinatorError(failure, this.#wasReady ? kind : 'read', this.#lastFailure))
      )
    })
  }

  /** Lets calls under way settle, each within its bounds, then closes an owned client. Never rejects. */
  close (): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close (): Promise<void> {
    // A call of several commands has none on its way between two of them: it goes on within this turn of the event loop, or is done.
    do {
      if (this.#pending > 0) await new Promise<void>(resolve => { this.#idle = resolve })
      await turn()
    } while (this.#pending > 0)
    this.#isClosed = true
    if (!this.owned) return unlisten(this.client, this.#hear)
    // quit() waits for the offline queue of a client that cannot connect, and its reply may never come.
    if (this.client.status === 'ready') await settlesWithin(this.client.quit(), quitTimeoutMs)
    this.client.disconnect()
  }

  /** Sends once the database of the URL is known to be there: iovalkey goes on in database 0 where the server has fewer. */
  #select<T> (send: () => Promise<T>): Promise<T> {
    const { client } = this
    const db = 'db' in client.options ? Number(client.options.db ?? 0) : 0
    if (!this.owned || db === 0) return send()
    this.#selected ??= (client as Redis).select(db).catch(error => {
      this.#selected = undefined
      throw replyCode(error) === 'ERR' ? new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', `Valkey has no database ${db}`, error) : error
    })
    return this.#selected.then(send)
  }
}

function refuseClusterWithoutHashTag (client: StoreClient, keyPrefix: string): void {
  const prefix = `${client.options.keyPrefix ?? ''}${keyPrefix}`
  if (!client.isCluster || hasHashTag(prefix)) return
  throw new CoordinatorError('PLT_COORDINATOR_NO_HASH_TAG', `Expected keyPrefix to hold a hash tag on a Cluster client, such as '{${prefix}}', got '${prefix}'`)
}

function openClient (url: string, redisOptions: RedisOptions): Redis {
  const { maxRetriesPerRequest = 1, connectTimeout = 2000 } = redisOptions
  const options = { ...redisOptions, maxRetriesPerRequest, connectTimeout }
  if (!url.startsWith('unix:')) return new Redis(url, options)
  const { pathname, searchParams } = new URL(url)
  const db = searchParams.get('db')
  return new Redis({ ...options, path: decodeURIComponent(pathname), ...(db === null ? {} : { db: Number(db) }) })
}

function listen (client: StoreClient, hear: (cause: Error) => void): void {
  let subscription = subscriptions.get(client)
  if (subscription === undefined) {
    const hearers = new Set<(cause: Error) => void>()
    subscription = { hearers, listener: cause => { for (const hearer of hearers) hearer(cause) } }
    subscriptions.set(client, subscription)
    client.on('error', subscription.listener)
  }
  subscription.hearers.add(hear)
}

function unlisten (client: StoreClient, hear: (cause: Error) => void): void {
  const subscription = subscriptions.get(client)
  subscription?.hearers.delete(hear)
  if (subscription === undefined || subscription.hearers.size > 0) return
  client.off('error', subscription.listener)
  subscriptions.delete(client)
}

// A client that throws instead of rejecting must not leave its caller's timer and count behind.
async function start<T> (send: () => Promise<T>): Promise<T> {
  return await send()
}

/** Waits for work to be fulfilled or rejected, for so many milliseconds at most; tells whether it was. */
export async function settlesWithin (work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<boolean>(resolve => { timer = setTimeout(resolve, ms, false) })
  const isSettled = await Promise.race([work.then(() => true, () => true), limit])
  clearTimeout(timer)
  return isSettled
}
