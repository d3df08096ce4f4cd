// A pod: a process that owns destinations and holds their state in its memory. Here the state is one counter for each.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Member, Registry } from '@platformatic/coordinator'
import { cacheTtl, heartbeatInterval, redis, ttl } from './settings.ts'

const [memberId = 'pod', keyPrefix = 'coordinator-demo'] = process.argv.slice(2)

// The parent ends us by closing the channel, also when it crashes. Ctrl-C reaches the whole process group: the parent decides.
process.once('disconnect', () => process.exit())
process.on('SIGINT', () => {})
if (!process.connected) process.exit()

const counters = new Map<string, number>()
const server = createServer(handle).listen(0, '127.0.0.1')
await once(server, 'listening')
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const registry = new Registry({ redis, keyPrefix, memberIndex: true, cache: false })
const member = new Member({ redis, keyPrefix, memberIndex: true, memberId, address, ttl, getLoad: () => counters.size })
await member.register()
const heartbeat = setInterval(() => member.heartbeat(), heartbeatInterval)

process.once('SIGTERM', leave)
process.send?.({ address })

/** Answers `GET /<destinationId>` with the destination's counter, or with 421 when this pod does not own it. */
async function handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
  const destinationId = request.url!.slice(1)
  try {
    // The caller's word is not taken for it: the pod reads the truth from the store, past every cache, on each request.
    // This is what lets the demo say that no request was misrouted. A pod in production would rather look in its memory.
    const binding = await registry.readBinding(destinationId)
    if (!binding.some(pod => pod.memberId === memberId)) {
      response.writeHead(421).end(`${memberId} does not own ${destinationId}\n`)
      return
    }
    const count = (counters.get(destinationId) ?? 0) + 1
    counters.set(destinationId, count)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ memberId, destinationId, count }))
  } catch (error) {
    response.writeHead(503).end(`${error}\n`)
  }
}

/** Moves every destination to the other pods and exits, without a request lost. */
async function leave (): Promise<void> {
  await member.setDraining(true)
  const owned = await member.listOwned()
  const peers = (await member.listPeerLoad()).filter(peer => !peer.draining)

  // Bind the other pod first, unbind this one once no caller can still hold a binding that names this pod alone: for that
  // moment both own the destination, so whichever pod a caller knows of answers. Callers prefer the one that is not draining.
  const moved: string[] = []
  for (const [i, destinationId] of owned.entries()) {
    const peer = peers[i % peers.length]
    if (peer && await registry.addPodToDestination(destinationId, peer.memberId)) moved.push(destinationId)
  }
  await sleep(2 * cacheTtl) // once for the coordinators' caches, once more for requests on their way
  for (const destinationId of moved) {
    await member.removeFromDestination(destinationId)
    counters.delete(destinationId)
  }

  clearInterval(heartbeat)
  await member.deregister() // what could not be moved is orphaned now, the next request for it reassigns it
  await Promise.all([member.close(), registry.close()])
  process.disconnect()
}
