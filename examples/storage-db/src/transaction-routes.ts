// The routes of transactions. The one that begins is a route of the tenant; the others find the transaction by its lockId alone.

import type { FastifyInstance } from 'fastify'
import { watchClient } from './client.ts'
import { StorageError } from './errors.ts'
import { getKey, putKey } from './keys.ts'
import { isolationLevels } from './transactions.ts'
import type { IsolationLevel, Transactions } from './transactions.ts'
import { checkKey, decodeValue, encodeValue } from './values.ts'

interface LockRoute { Params: { lockId: string } }
interface LockKeyRoute { Params: { lockId: string, key: string } }

export async function transactionRoutes (app: FastifyInstance, { transactions }: { transactions: Transactions }): Promise<void> {
  app.put<LockKeyRoute>('/transactions/:lockId/keys/:key', async (request, reply) => {
    const transaction = transactions.get(request.params.lockId)
    const key = checkKey(request.params.key)
    const value = decodeValue(request.body)
    await transaction.run((client, schema) => putKey(client, schema, key, value), watchClient(request))
    return reply.code(204).send()
  })

  app.get<LockKeyRoute>('/transactions/:lockId/keys/:key', async request => {
    const transaction = transactions.get(request.params.lockId)
    const key = checkKey(request.params.key)
    const found = await transaction.run((client, schema) => getKey(client, schema, key), watchClient(request))
    if (found === null) throw new StorageError('STORAGE_KEY_NOT_FOUND')
    return encodeValue(found)
  })

  app.post<LockRoute>('/transactions/:lockId/commit', async (request, reply) => {
    await transactions.get(request.params.lockId).commit(watchClient(request))
    return reply.code(204).send()
  })

  app.post<LockRoute>('/transactions/:lockId/rollback', async (request, reply) => {
    await transactions.get(request.params.lockId).rollBack(watchClient(request))
    return reply.code(204).send()
  })
}

/** Takes the isolation level from an optional body. @throws STORAGE_INVALID_ISOLATION_LEVEL */
export function readIsolationLevel (body: unknown): IsolationLevel {
  if (body === undefined) return 'read committed'
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new StorageError('STORAGE_INVALID_ISOLATION_LEVEL', { message: 'Expected the body to be an object' })
  const { isolationLevel = 'read committed' } = body as { isolationLevel?: unknown }
  const level = isolationLevels.find(level => typeof isolationLevel === 'string' && level === isolationLevel.toLowerCase())
  if (level === undefined) throw new StorageError('STORAGE_INVALID_ISOLATION_LEVEL', { message: `Expected isolationLevel to be one of ${isolationLevels.join(', ')}` })
  return level
}
