// The coordinator as a Fastify plugin: the library's plugin, and one route for each of the pods'.
//
// Every route of a tenant claims and reassigns, not only the one that creates. Which tenants there are PostgreSQL knows, and Valkey may have
// lost its data: a tenant that is bound to nobody is given to some pod, which looks. When there is no such tenant the pod answers 404 and
// gives the binding back.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import coordinatorPlugin from '@platformatic/coordinator'
import { answerErrors } from './errors.ts'
import type { CoordinatorSettings } from './settings.ts'
import { maxBodyBytes } from './values.ts'

export interface StorageCoordinatorOptions {
  readonly settings: CoordinatorSettings
}

interface TenantRoute { Params: { id: string } }
interface LockRoute { Params: { lockId: string } }

const heal = { claimOnMiss: true, reassignOrphans: true }

export const storageCoordinatorPlugin = fp(async (app: FastifyInstance, { settings }: StorageCoordinatorOptions) => {
  await app.register(coordinatorPlugin, {
    redis: settings.redisUrl,
    keyPrefix: settings.keyPrefix,
    memberIndex: true,
    strategy: 'least-loaded',
    // A tenant on several pods is spread evenly: by load all its requests would go to one pod until the cached figures are replaced.
    fanOutStrategy: 'round-robin',
    cache: { ttl: settings.cacheTtl },
    requestTimeout: settings.requestTimeout,
    onError: error => app.log.warn({ err: error }, 'coordinator')
  })
  const { registry, lookupAndProxy, lookupAndDeregister, lookupLockAndProxy } = app.coordinator
  answerErrors(app)

  const ofTenant = lookupAndProxy<TenantRoute>({ destinationFrom: request => request.params.id, ...heal, noPodStatus: 503 })
  const ofLock = lookupLockAndProxy<LockRoute>({ lockFrom: request => request.params.lockId })
  // A delete of what is bound to nobody, or to dead pods alone, would be answered without asking a pod: first it gets one that lives.
  const deleteTenant = lookupAndDeregister<TenantRoute>({ destinationFrom: claimFirst })
  const limits = { bodyLimit: maxBodyBytes }

  app.get('/health', async () => ({ ok: true }))
  app.get('/pods', async () => ({ pods: await listPods() }))

  app.post('/tenants/:id', limits, ofTenant)
  app.delete('/tenants/:id', limits, deleteTenant)
  app.get('/tenants/:id/keys', ofTenant)
  app.put('/tenants/:id/keys/:key', limits, ofTenant)
  app.get('/tenants/:id/keys/:key', ofTenant)
  app.delete('/tenants/:id/keys/:key', limits, ofTenant)
  app.post('/tenants/:id/transactions', limits, ofTenant)

  // A transaction lives where its connection is, whatever becomes of the binding of its tenant.
  app.put('/transactions/:lockId/keys/:key', limits, ofLock)
  app.get('/transactions/:lockId/keys/:key', ofLock)
  app.post('/transactions/:lockId/commit', limits, ofLock)
  app.post('/transactions/:lockId/rollback', limits, ofLock)

  async function claimFirst (request: FastifyRequest<TenantRoute>): Promise<string> {
    const { id } = request.params
    if (id !== '') await registry.resolveDestination(id, heal)
    return id
  }

  async function listPods () {
    const members = await registry.listLiveMembers()
    return await Promise.all(members.map(async ({ memberId, load, draining }) => (
      { memberId, load, draining, tenants: (await registry.listOwned(memberId)).sort() }
    )))
  }
}, { name: 'storage-db-coordinator', fastify: '5.x' })
