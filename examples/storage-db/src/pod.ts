// A pod: a process that keeps connections to PostgreSQL for the tenants it owns. All its settings come from the environment.

import Fastify from 'fastify'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerError } from './errors.ts'
import { closeHttp, listeningAddress, runProcess, watchConnections } from './lifecycle.ts'
import { podPlugin } from './pod-plugin.ts'
import { readPodSettings } from './settings.ts'
import { maxBodyBytes, maxParamLength } from './values.ts'

/** Milliseconds beyond CACHE_TTL for which requests may still be on their way here. */
const slack = 500
/** Milliseconds that what is left may take after the last request. */
const closingTime = 20_000

runProcess(async askToStop => {
  const settings = readPodSettings(process.env)
  const app = Fastify({
    logger: { level: settings.logLevel, stream: process.stderr },
    bodyLimit: maxBodyBytes,
    routerOptions: { maxParamLength },
    frameworkErrors: answerError,
    return503OnClosing: false
  })
  await app.register(podPlugin, { settings, onSuperseded: askToStop })
  watchConnections(app)
  await app.listen({ host: settings.host, port: settings.port })

  const { membership, transactions } = app.pod
  const address = settings.address ?? listeningAddress(app)
  await membership.join(address)

  return {
    announcement: { address: listeningAddress(app), memberId: settings.memberId },
    stopTimeout: settings.drainTimeout + settings.cacheTtl + slack + closingTime,
    async stop () {
      await membership.drain()
      await transactions.finish(membership.isSuperseded ? 0 : settings.drainTimeout)
      await membership.leave()
      // Coordinators go by what they have read: as long as one may still name this pod it answers as before.
      await sleep(settings.cacheTtl + slack)
      await closeHttp(app)
    }
  }
})
