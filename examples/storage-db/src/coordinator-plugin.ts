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
import { isTenantId, maxBodyBytes } from './values.ts'

export interface StorageCoordinatorOptions {
  readonly settings: CoordinatorSettings
}

interface TenantRoute { Params: { id: string } }
interface LockRoute { Params: { lockId: string } }

/** A tenant without a live pod gets one. */
const heal = { claimOnMiss: true, reassignOrphans: true }

/** What can be no tenant is refused here, with 400: to claim it first would leave a binding that no pod can give back. */
const destinationFrom = ({ params }: FastifyRequest<TenantRoute>): string | undefined => isTenantId(params.id) ? params.id : undefined

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

  const ofTenant = lookupAndProxy<TenantRoute>({ destinationFrom, ...heal, noPodStatus: 503 })
  // A delete too must reach a pod in any case: what has to go lies in PostgreSQL.
  const deleteTenant = lookupAndDeregister<TenantRoute>({ destinationFrom, ...heal, noPodStatus: 503 })
  const ofLock = lookupLockAndProxy<LockRoute>({ lockFrom: request => request.params.lockId })
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

  async function listPods () {
    const members = await registry.listLiveMembers()
    return await Promise.all(members.map(async ({ memberId, load, draining }) => (
      { memberId, load, draining, tenants: (await registry.listOwned(memberId)).sort() }
    )))
  }
}, { name: 'storage-db-coordinator', fastify: '5.x' })
