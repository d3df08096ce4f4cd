// The coordinator in front of the stateful pods: the library's plugin with what a user would give it.
// ROUTER=random is the control: every request goes to any live pod, and the scenario's ledger must find that out.

import Fastify from 'fastify'
import coordinatorPlugin, { proxyVia } from '@platformatic/coordinator'
import type { StrategyName } from '@platformatic/coordinator'
import { endWithParent } from './end-with-parent.ts'
import { number, text } from './settings.ts'

endWithParent()
const isRandom = text('ROUTER', 'owner') === 'random'
const app = Fastify({ logger: { level: text('LOG_LEVEL', 'warn'), stream: process.stderr } })

await app.register(coordinatorPlugin, {
  redis: text('REDIS_URL'),
  keyPrefix: text('KEY_PREFIX'),
  memberIndex: true,
  strategy: isRandom ? 'random' : text('STRATEGY', 'round-robin') as StrategyName,
  cache: { ttl: number('CACHE_TTL', 5000) },
  requestTimeout: number('REQUEST_TIMEOUT', 10_000)
})
const { registry, lookupAndProxy } = app.coordinator

app.get('/pods', async () => {
  const members = await registry.listLiveMembers()
  const pods = await Promise.all(members.map(async ({ memberId, load, draining }) => {
    return { memberId, load, draining, destinations: (await registry.listOwned(memberId)).sort() }
  }))
  return { pods }
})

app.all('/:destinationId', isRandom
  ? proxyVia(() => registry.pickMember(), { noPodStatus: 503 })
  : lookupAndProxy({ destinationFrom: request => request.params.destinationId, claimOnMiss: true, reassignOrphans: true, noPodStatus: 503 }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => app.close())
const address = await app.listen({ port: number('PORT', 0), host: text('HOST', '127.0.0.1') })
process.stdout.write(`${JSON.stringify({ ready: true, address })}\n`)
