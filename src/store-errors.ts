import { CoordinatorError } from './errors.ts'

/** What a failed command may have done. */
export type CommandKind = 'read' | 'write'

// Replies by which Valkey says "not now": loading, a replica, full, a cluster without its quorum. The first word of an error reply is
// its code by the protocol.
const transientCodes = new Set(['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS', 'MISCONF', 'OOM'])
const clusterCodes = new Set(['MOVED', 'ASK', 'CROSSSLOT'])
const ourCommands = new Set(['evalsha', 'eval', 'exists', 'smembers', 'sscan'])

export function closedError (): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_CLOSED', 'close() was called on this instance')
}

/** The code of an error reply of Valkey, such as NOSCRIPT; undefined for errors of the connection. */
export function replyCode (error: unknown): string | undefined {
  return error instanceof Error && error.name === 'ReplyError' ? error.message.split(' ', 1)[0] : undefined
}

/**
 * Gives the caller the coded error that an error of the client, or the text of an error reply, stands for.
 * @param connectionFailure code of what the connection failed by last, which says more than the client's own error
 */
export function toCoordinatorError (failure: unknown, kind: CommandKind, connectionFailure?: string): CoordinatorError {
  if (failure instanceof CoordinatorError) return failure
  const cause = typeof failure === 'string' ? Object.assign(new Error(failure), { name: 'ReplyError' }) : withoutSecrets(failure)
  const message = cause instanceof Error ? cause.message : String(cause)
  const code = replyCode(cause)
  if (code === undefined) return unavailable(kind, connectionFailure ?? message, cause)
  // A reply to a command that is none of ours, such as those a client greets with, means that there is no connection to use.
  const name = commandName(failure)
  if (transientCodes.has(code) || (name !== undefined && !ourCommands.has(name))) {
    return new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `Valkey is not available: it answered ${message}`, cause)
  }
  if (clusterCodes.has(code)) {
    return new CoordinatorError('PLT_COORDINATOR_NO_HASH_TAG', "Valkey runs as a cluster: pass a Cluster client and a keyPrefix with a hash tag, such as '{myservice}'", cause)
  }
  return new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', `Valkey refused the command: ${message}`, cause)
}

export function unavailable (kind: CommandKind, message: string, cause?: unknown): CoordinatorError {
  const outcome = kind === 'write' ? ', the outcome of the write is unknown' : ''
  return new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', `Valkey is not available${outcome}: ${message}`, cause)
}

/** The same error without a password: iovalkey keeps the command with its arguments on an error reply, those of AUTH and HELLO too. */
export function withoutSecrets (cause: unknown): unknown {
  const name = commandName(cause)
  if (!(cause instanceof Error) || (name !== 'auth' && name !== 'hello')) return cause
  const copy = new Error(cause.message)
  copy.name = cause.name
  if (cause.stack !== undefined) copy.stack = cause.stack
  return copy
}

/** Name of the command that an error answers, in lower case. */
export function commandName (failure: unknown): string | undefined {
  const name = (failure as { command?: { name?: unknown } } | null)?.command?.name
  return typeof name === 'string' ? name.toLowerCase() : undefined
}
