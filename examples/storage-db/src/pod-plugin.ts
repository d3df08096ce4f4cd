// The pod as a Fastify plugin: its pools, its place among the pods, its routes, and the way out.

import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { createPool } from './database.ts'
import { answerErrors, StorageError } from './errors.ts'
import { FanOutRecords } from './fan-out-records.ts'
import { FanOut } from './fan-out.ts'
import { PodMembership } from './pod-membership.ts'
import { PoolManager } from './pool-manager.ts'
import type { PodSettings } from './settings.ts'
import { TenantBindings } from './tenant-bindings.ts'
import { tenantRoutes } from './tenant-routes.ts'
import { TenantStore } from './tenant-store.ts'
import { Tenants } from './tenants.ts'
import { transactionRoutes } from './transaction-routes.ts'
import { Transactions } from './transactions.ts'

export interface PodPluginOptions {
  readonly settings: PodSettings
  /** Another process took the memberId over: the pod is to stop. */
  readonly onSuperseded: () => void
}

export interface Pod {
  readonly membership: PodMembership
  readonly pools: PoolManager
  readonly transactions: Transactions
}

declare module 'fastify' {
  interface FastifyInstance {
    pod: Pod
  }
}

// The catalogue is asked for the first request of each tenant, and for creating and deleting.
const catalogueConnections = 4

export const podPlugin = fp(async (app: FastifyInstance, { settings, onSuperseded }: PodPluginOptions) => {
  const { database, memberId } = settings
  const onPoolError = (error: Error): void => app.log.warn({ err: error }, 'an idle connection to PostgreSQL broke')

  const catalogue = createPool(database, catalogueConnections, settings.poolIdle, onPoolError)
  const tenants = new Tenants(catalogue, database.schemaPrefix)
  const pools = new PoolManager({
    createPool: () => createPool(database, settings.poolMax, settings.poolIdle, onPoolError),
    poolIdle: settings.poolIdle,
    saturationWait: settings.fanOutWait,
    onSaturated: (tenantId): void => { fanOut.onSaturated(tenantId) }
  })
  const membership = new PodMembership({
    settings,
    getLoad: () => pools.openCount,
    onHeartbeat: async () => {
      await fanOut.lookAtAll()
      await bindings.resolveDoubts()
      await bindings.giveBackStrays()
    },
    onSuperseded,
    log: app.log
  })
  const store = new TenantStore(pools, tenants, database.statementTimeout)
  const bindings = new TenantBindings(tenants, membership, settings.straysInterval)
  const transactions = new Transactions({ settings, store, tenants, membership, log: app.log })
  const fanOut = new FanOut({ settings, catalogue, records: new FanOutRecords(database.schemaPrefix), tenants, pools, membership, log: app.log })

  app.decorate('pod', { membership, pools, transactions })
  app.addHook('onClose', async () => {
    await Promise.all([pools.close(), catalogue.end(), membership.close()])
  })
  await tenants.prepare()

  app.addHook('onRequest', async (_request, reply) => { reply.header('x-storage-pod', memberId) })
  parseJson(app)
  answerErrors(app)
  app.get('/health', async (_request, reply) => reply.code(membership.isDraining ? 503 : 200).send({ memberId, draining: membership.isDraining }))
  await app.register(tenantRoutes, { store, bindings, pools, transactions })
  await app.register(transactionRoutes, { transactions })
}, { name: 'storage-db-pod', fastify: '5.x' })

/**
 * JSON as its standard has it: UTF-8, and nothing else. Fastify's own parser puts U+FFFD for bytes that are none, and what was acknowledged
 * would be read back as something else. An empty body is none: many clients name its type also where they send nothing.
 */
function parseJson (app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
    const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type)?.[1] ?? 'utf-8'
    if (encoding !== 'identity' || !/^utf-?8$/i.test(charset)) return done(new StorageError('STORAGE_UNSUPPORTED_BODY'))
    if (!isUtf8(body)) return done(new StorageError('STORAGE_INVALID_VALUE', { message: 'Expected the body to be UTF-8' }))
    if (body.length === 0) return done(null, undefined)
    parse(request, body.toString('utf8'), done)
  })
}
