import Fastify from 'fastify'
import { coordinatorPlugin, proxyVia } from '@platformatic/coordinator'
import type { ProxyTarget } from '@platformatic/coordinator'
import { Client } from './client.ts'
import type { CoordinatorOptions } from './coordinator.ts'
import { redis } from './settings.ts'
import type { Tally } from './tally.ts'

/** Sends one request through a coordinator that asks nobody: it takes every request to the same pod, whoever owns the destination. */
export async function misroute (pod: ProxyTarget, destinationId: string, tally: Tally, { keyPrefix, onResult }: CoordinatorOptions): Promise<void> {
  const app = Fastify()
  await app.register(coordinatorPlugin, { redis, keyPrefix, memberIndex: true })
  app.get('/:id', proxyVia(() => pod, { onResult }))
  try {
    await new Client(await app.listen({ host: '127.0.0.1', port: 0 }), tally).request(destinationId)
  } finally {
    await app.close()
  }
}
