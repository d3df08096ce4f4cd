import { Redis } from 'iovalkey'
import type { RedisOptions } from 'iovalkey'
import { publish } from './diagnostics.ts'
import { CoordinatorError } from './errors.ts'
import { hasHashTag } from './keys.ts'
import type { CheckedStoreOptions } from './options.ts'
import type { StoreClient } from './types.ts'

/** What a failed command may have done. */
export type CommandKind = 'read' | 'write'

// Replies by which Valkey says "not now": loading, a replica, full, a cluster without its quorum. The first word of an error reply is
// its code by the protocol.
const transientCodes = new Set(['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS', 'MISCONF', 'OOM'])
const ourCommands = new Set(['evalsha', 'eval', 'exists', 'smembers', 'sscan'])
const clusterCodes = new Set(['MOVED', 'ASK', 'CROSSSLOT'])
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
  #pending = 0
  #idle: (() => void) | undefined
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
    if (this.owned) this.client.on('error', this.#hear) // for good: it may still speak of its socket while it closes
    else listen(this.client, this.#hear)
  }

  /** The prefix the client itself puts before keys. */
  get clientPrefix (): string {
    return this.client.options.keyPrefix ?? ''
  }

  get isClosed (): boolean {
    return this.#closing !== undefined
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
    if (this.#closing !== undefined) return Promise.reject(closedError())
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
      const timer = setTimeout(() => {
        if (settle()) reject(unavailable(kind, `no reply within ${this.#timeoutMs} ms`))
      }, this.#timeoutMs)
      start(() => send(() => !isSettled)).then(
        reply => {
          this.#lastFailure = undefined
          if (settle()) resolve(reply)
        },
        (failure: unknown) => { if (settle()) reject(toCoordinatorError(failure, kind, this.#lastFailure)) }
      )
    })
  }

  /** Lets commands under way settle, each within its bound, then closes an owned client. Never rejects. */
  close (): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close (): Promise<void> {
    if (this.#pending > 0) await new Promise<void>(resolve => { this.#idle = resolve })
    if (this.owned) {
      // quit() waits for the offline queue of a client that cannot connect, and its reply may never come.
      if (this.client.status === 'ready') await settlesWithin(this.client.quit(), quitTimeoutMs)
      this.client.disconnect()
    }
    if (!this.owned) unlisten(this.client, this.#hear)
  }
}

export function closedError (): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_CLOSED', 'close() was called on this instance')
}

/** The code of an error reply of Valkey, such as NOSCRIPT; undefined for errors of the connection. */
export function replyCode (error: unknown): string | undefined {
  return error instanceof Error && error.name === 'ReplyError' ? error.message.split(' ', 1)[0] : undefined
}

/** Gives the caller the coded error that an error of the client, or the text of an error reply, stands for. */
export function toCoordinatorError (failure: unknown, kind: CommandKind, connectionFailure?: string): CoordinatorError {
  if (failure instanceof CoordinatorError) return failure
  const cause = withoutSecrets(failure)
  // A reply to a command that is none of ours, such as those a client greets with, means that there is no connection to use.
  if (!isReplyToOurs(failure)) return unavailable(kind, failure instanceof Error ? failure.message : String(failure), cause)
  const message = cause instanceof Error ? cause.message : String(cause)
  const code = cause instanceof Error ? replyCode(cause) : message.split(' ', 1)[0]
  if (code === undefined) return unavailable(kind, connectionFailure ?? message, cause)
  if (transientCodes.has(code)) return new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `Valkey is not available: it answered ${message}`, cause)
  if (clusterCodes.has(code)) {
    return new CoordinatorError('PLT_COORDINATOR_NO_HASH_TAG',
      `Valkey runs as a cluster: pass a Cluster client and a keyPrefix with a hash tag, such as '{myservice}' (it answered ${message})`, cause)
  }
  return new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', `Valkey refused the command: ${message}`, cause)
}

function openClient (url: string, redisOptions: RedisOptions): Redis {
  const { maxRetriesPerRequest = 1, connectTimeout = 2000 } = redisOptions
  const options = { ...redisOptions, maxRetriesPerRequest, connectTimeout }
  if (!url.startsWith('unix:')) return new Redis(url, options)
  const { pathname, searchParams } = new URL(url)
  const db = searchParams.get('db')
  return new Redis({ ...options, path: decodeURIComponent(pathname), ...(db === null ? {} : { db: Number(db) }) })
}

function isReplyToOurs (failure: unknown): boolean {
  const name = commandName(failure)
  return name === undefined || ourCommands.has(name)
}

function commandName (failure: unknown): string | undefined {
  const name = (failure as { command?: { name?: unknown } } | null)?.command?.name
  return typeof name === 'string' ? name.toLowerCase() : undefined
}

// iovalkey keeps the command with its arguments on an error reply: those of AUTH and HELLO are a password.
function withoutSecrets (cause: unknown): unknown {
  const name = commandName(cause)
  if (!(cause instanceof Error) || (name !== 'auth' && name !== 'hello')) return cause
  const copy = new Error(cause.message)
  copy.name = cause.name
  if (cause.stack !== undefined) copy.stack = cause.stack
  return copy
}

// A client that throws instead of rejecting must not leave its caller's timer and count behind.
async function start<T> (send: () => Promise<T>): Promise<T> {
  return await send()
}

function unavailable (kind: CommandKind, message: string, cause?: unknown): CoordinatorError {
  const outcome = kind === 'write' ? ', the outcome of the write is unknown' : ''
  return new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `Valkey is not available${outcome}: ${message}`, cause)
}

function refuseClusterWithoutHashTag (client: StoreClient, keyPrefix: string): void {
  const prefix = `${client.options.keyPrefix ?? ''}${keyPrefix}`
  if (!client.isCluster || hasHashTag(prefix)) return
  throw new CoordinatorError('PLT_COORDINATOR_NO_HASH_TAG', `Expected keyPrefix to hold a hash tag on a Cluster client, such as '{${prefix}}', got '${prefix}'`)
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

/** Waits for work to be fulfilled or rejected, for so many milliseconds at most; tells whether it was. */
export async function settlesWithin (work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<boolean>(resolve => { timer = setTimeout(resolve, ms, false) })
  const isSettled = await Promise.race([work.then(() => true, () => true), limit])
  clearTimeout(timer)
  return isSettled
}
