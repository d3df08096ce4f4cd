// A coordinator: an HTTP server in front of the pods that sends each request to the pod of its destination. Any number of them may
// run, they share nothing but the store. Here two run in the process of the demo; usually each is a process, or a container, of its own.

import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import coordinatorPlugin from '@platformatic/coordinator'
import type { HelperResult } from '@platformatic/coordinator'
import { cacheTtl, podTimeout, redis } from './settings.ts'

export interface CoordinatorOptions {
  keyPrefix: string
  onResult: (result: HelperResult) => void
}

/** Makes an application that serves `GET /<destinationId>`. */
export async function createCoordinator ({ keyPrefix, onResult }: CoordinatorOptions): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(coordinatorPlugin, {
    redis, keyPrefix, memberIndex: true, strategy: 'least-loaded', cache: { ttl: cacheTtl }, requestTimeout: podTimeout
  })
  // The first request for a destination claims it for a pod; when its pods are dead, it goes to one that lives.
  app.get('/:id', app.coordinator.lookupAndProxy({
    destinationFrom: request => request.params.id, claimOnMiss: true, reassignOrphans: true, noPodStatus: 503, onResult
  }))
  return app
}
