// Every answer of a pod that is not a success, in one table, and the one place where an error becomes a reply.

import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

interface Kind {
  readonly statusCode: number
  readonly message: string
  /** Seconds after which trying again makes sense. */
  readonly retryAfter?: number
}

const kinds = {
  STORAGE_INVALID_TENANT: { statusCode: 400, message: 'The tenant id cannot be stored' },
  STORAGE_INVALID_KEY: { statusCode: 400, message: 'The key cannot be stored' },
  STORAGE_INVALID_VALUE: { statusCode: 400, message: 'The value cannot be stored' },
  STORAGE_INVALID_QUERY: { statusCode: 400, message: 'The query is not understood' },
  STORAGE_INVALID_ISOLATION_LEVEL: { statusCode: 400, message: 'The isolation level is not known' },
  STORAGE_UNSUPPORTED_BODY: { statusCode: 415, message: 'A body is JSON in UTF-8, without a content-encoding' },
  STORAGE_VALUE_TOO_LARGE: { statusCode: 413, message: 'The value is larger than 1 MiB' },

  STORAGE_TENANT_NOT_FOUND: { statusCode: 404, message: 'There is no such tenant' },
  STORAGE_KEY_NOT_FOUND: { statusCode: 404, message: 'There is no such key' },
  STORAGE_TRANSACTION_NOT_FOUND: { statusCode: 404, message: 'There is no such transaction: it ended, expired, or never was' },
  STORAGE_ROUTE_NOT_FOUND: { statusCode: 404, message: 'There is no such route' },

  STORAGE_TOO_MANY_TRANSACTIONS: { statusCode: 429, message: 'The tenant has as many open transactions as it may have', retryAfter: 1 },
  STORAGE_TRANSACTION_FAILED: { statusCode: 409, message: 'PostgreSQL refused a statement: the transaction is over, and nothing of it was written' },

  /** Nothing was written. */
  STORAGE_DATABASE_UNAVAILABLE: { statusCode: 503, message: 'PostgreSQL cannot be reached; nothing was written', retryAfter: 1 },
  STORAGE_OVERLOADED: { statusCode: 503, message: 'All connections of the tenant are in use; nothing was written', retryAfter: 1 },
  STORAGE_STATEMENT_FAILED: { statusCode: 503, message: 'PostgreSQL gave the statement up; nothing was written', retryAfter: 1 },
  STORAGE_TENANT_BUSY: { statusCode: 503, message: 'The tenant is in use and could not be deleted', retryAfter: 1 },
  STORAGE_POD_DRAINING: { statusCode: 503, message: 'This pod is on its way out and begins no transaction', retryAfter: 1 },
  STORAGE_LOCK_NOT_REGISTERED: { statusCode: 503, message: 'The transaction could not be made known to the coordinators; it was rolled back', retryAfter: 1 },
  STORAGE_TRANSACTION_LOST: { statusCode: 503, message: 'The connection of the transaction broke: it is over, and nothing of it was written' },
  /** What PostgreSQL made of it nobody knows: read it back. */
  STORAGE_WRITE_OUTCOME_UNKNOWN: { statusCode: 503, message: 'The connection broke before PostgreSQL answered: the write may have been made or not', retryAfter: 1 },
  STORAGE_COMMIT_OUTCOME_UNKNOWN: { statusCode: 503, message: 'The connection broke before PostgreSQL answered: the transaction may have been committed or not', retryAfter: 1 },
  /** Nobody is there to read it. */
  STORAGE_CLIENT_GONE: { statusCode: 503, message: 'The client left before the write was sent; nothing was written' }
} as const satisfies Record<string, Kind>

export type StorageErrorCode = keyof typeof kinds

/** An answer that is not a success. */
export class StorageError extends Error {
  readonly code: StorageErrorCode
  readonly statusCode: number
  readonly retryAfter: number | undefined

  constructor (code: StorageErrorCode, { cause, message }: { cause?: unknown, message?: string } = {}) {
    const kind: Kind = kinds[code]
    super(message ?? kind.message, { cause })
    this.name = 'StorageError'
    this.code = code
    this.statusCode = kind.statusCode
    this.retryAfter = kind.retryAfter
  }
}

export function isStorageError (error: unknown, code: StorageErrorCode): error is StorageError {
  return error instanceof StorageError && error.code === code
}

/** Has an application answer errors with `{ statusCode, code, error, message }`. */
export function answerErrors (app: FastifyInstance): void {
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((_request, reply) => answerError(new StorageError('STORAGE_ROUTE_NOT_FOUND'), _request, reply))
}

/** For what Fastify refuses before any handler: the `frameworkErrors` of an application. */
export function answerError (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Errors of Fastify (a body that is no JSON or too large) and of the coordinator library bring a status and a code of their own.
  const { statusCode = 500, code = 'STORAGE_FAILED', message } = error as Partial<FastifyError>
  if (error instanceof StorageError) {
    // In one line: a PostgreSQL that is away brings as many of these as there are requests.
    if (statusCode >= 500) request.log.warn({ code, cause: error.cause instanceof Error ? error.cause.message : undefined }, message)
  } else if (statusCode >= 500) {
    request.log.error({ code, err: error }, 'request failed')
  }
  const retryAfter = error instanceof StorageError ? error.retryAfter : statusCode === 503 ? 1 : undefined
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  // What was not foreseen is for the log alone.
  const isForeseen = statusCode !== 500
  return reply.code(statusCode).send({
    statusCode,
    code: isForeseen ? code : 'STORAGE_FAILED',
    error: STATUS_CODES[statusCode] ?? 'Error',
    message: isForeseen ? message : 'Something went wrong; see the log of the pod'
  })
}
