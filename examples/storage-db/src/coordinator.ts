// A coordinator: a process in front of the pods that sends each request to the pod of its tenant, or of its transaction. Any number of them
// may run. All its settings come from the environment.

import Fastify from 'fastify'
import { storageCoordinatorPlugin } from './coordinator-plugin.ts'
import { answerError } from './errors.ts'
import { closeHttp, listeningAddress, runProcess, watchConnections } from './lifecycle.ts'
import { readCoordinatorSettings } from './settings.ts'
import { maxParamLength } from './values.ts'

runProcess(async () => {
  const settings = readCoordinatorSettings(process.env)
  const app = Fastify({
    logger: { level: settings.logLevel, stream: process.stderr },
    routerOptions: { maxParamLength },
    frameworkErrors: answerError,
    return503OnClosing: false
  })
  await app.register(storageCoordinatorPlugin, { settings })
  watchConnections(app)
  await app.listen({ host: settings.host, port: settings.port })

  return {
    announcement: { address: listeningAddress(app) },
    stopTimeout: settings.requestTimeout + 20_000,
    stop: () => closeHttp(app)
  }
})
