// The routes of tenants and their keys.

import type { FastifyInstance } from 'fastify'
import { refuseGone, watchClient } from './client.ts'
import { StorageError, isStorageError } from './errors.ts'
import { deleteKey, getKey, listKeys, putKey } from './keys.ts'
import type { PoolManager } from './pool-manager.ts'
import type { TenantBindings } from './tenant-bindings.ts'
import type { TenantStore } from './tenant-store.ts'
import { readIsolationLevel } from './transaction-routes.ts'
import type { Transactions } from './transactions.ts'
import { checkKey, checkTenantId, decodeValue, encodeValue } from './values.ts'

export interface TenantRoutesOptions {
  readonly store: TenantStore
  readonly bindings: TenantBindings
  readonly pools: PoolManager
  readonly transactions: Transactions
}

interface TenantRoute { Params: { id: string } }
interface KeyRoute { Params: { id: string, key: string } }
interface ListRoute extends TenantRoute { Querystring: { after?: unknown, limit?: unknown } }

const maxPage = 1000
const defaultPage = 100

export async function tenantRoutes (app: FastifyInstance, { store, bindings, pools, transactions }: TenantRoutesOptions): Promise<void> {
  app.post<TenantRoute>('/tenants/:id', async (request, reply) => {
    const id = checkTenantId(request.params.id)
    const status = await bindings.create(id, watchClient(request))
    return reply.code(status === 'created' ? 201 : 200).send({ id })
  })

  app.delete<TenantRoute>('/tenants/:id', async (request, reply) => {
    const id = checkTenantId(request.params.id)
    await refuseGone(watchClient(request))
    await transactions.endAll(id)
    if (!await bindings.drop(id, watchClient(request))) throw new StorageError('STORAGE_TENANT_NOT_FOUND')
    return reply.code(204).send()
  })

  app.put<KeyRoute>('/tenants/:id/keys/:key', async (request, reply) => {
    const [id, key] = [checkTenantId(request.params.id), checkKey(request.params.key)]
    const value = decodeValue(request.body)
    await store.write(id, { isGone: watchClient(request), isIdempotent: true }, (client, schema) => putKey(client, schema, key, value))
    return reply.code(204).send()
  })

  app.get<KeyRoute>('/tenants/:id/keys/:key', async request => {
    const [id, key] = [checkTenantId(request.params.id), checkKey(request.params.key)]
    const found = await store.read(id, (client, schema) => getKey(client, schema, key))
    if (found === null) throw new StorageError('STORAGE_KEY_NOT_FOUND')
    return encodeValue(found)
  })

  app.delete<KeyRoute>('/tenants/:id/keys/:key', async (request, reply) => {
    const [id, key] = [checkTenantId(request.params.id), checkKey(request.params.key)]
    // Not idempotent: the second time there is nothing to delete, and the answer would be 404.
    const existed = await store.write(id, { isGone: watchClient(request), isIdempotent: false }, (client, schema) => deleteKey(client, schema, key))
    if (!existed) throw new StorageError('STORAGE_KEY_NOT_FOUND')
    return reply.code(204).send()
  })

  app.get<ListRoute>('/tenants/:id/keys', async request => {
    const id = checkTenantId(request.params.id)
    const { after, limit } = request.query
    const [afterKey, count] = [after === undefined ? undefined : checkKey(after), readLimit(limit)]
    return await store.read(id, (client, schema) => listKeys(client, schema, afterKey, count))
  })

  app.post<TenantRoute>('/tenants/:id/transactions', async (request, reply) => {
    const id = checkTenantId(request.params.id)
    const { lockId, expiresAt } = await transactions.begin(id, readIsolationLevel(request.body), watchClient(request))
    return reply.code(201).send({ lockId, idleTimeout: transactions.idleTimeout, expiresAt })
  })

  // Whatever was asked, and refused for whatever reason: the coordinator has claimed the tenant for this pod first. Where the pod has not
  // seen that there is such a tenant it looks, so that made-up ids leave no bindings behind.
  app.addHook<TenantRoute>('onError', async (request, _reply, error) => {
    const { id } = request.params
    if (isStorageError(error, 'STORAGE_TENANT_NOT_FOUND') || !pools.isOpened(id)) await bindings.giveBackIfMissing(id)
  })
}

function readLimit (limit: unknown): number {
  if (limit === undefined) return defaultPage
  const count = typeof limit === 'string' && /^\d{1,4}$/.test(limit) ? Number(limit) : NaN
  if (!(count >= 1 && count <= maxPage)) throw new StorageError('STORAGE_INVALID_QUERY', { message: `Expected limit to be a whole number from 1 to ${maxPage}` })
  return count
}
