// A pod that keeps its state in memory: one number for each destination, read from PostgreSQL at the first request for it, counted up by
// each write, and written through before the reply. A router that sends the requests of one destination to two pods shows at once: each
// counts on from what it remembers, and numbers repeat.
//
//   POST /:destinationId   body: a unique write id -> { memberId, incarnation, number }, the next number, stored with the write id
//   GET  /:destinationId   -> the same with the current number, 0 for none
//   503 with { code }: not served; OUTCOME_UNKNOWN: it may have been written
//
// What a pod must do as long as the storage does not know which pod owns what (no fencing):
// - It keeps a lease on its own monotonic clock, from the moment a good heartbeat was sent (lease.ts). When that ends it drops all state and
//   answers 503 until it beats again: a process that was stopped wakes with old memory and with requests in its sockets.
// - After each heartbeat it compares what it holds with listOwned() and drops what it lost.
// - When its record was lost it loads nothing for one ttl: another pod may not have noticed yet that it lost the destination.
// - It does not ask who owns a destination that it is sent to. That is the router's word, which the scenarios test.
// - On SIGTERM: setDraining, so that nothing new is bound to it; the gate is closed, what is under way ends; the state is dropped; deregister,
//   so that others may take over; and then it listens no more: coordinators that remember it are refused and go to the new pod.
// What is left, without fencing: a process stopped between the look at its lease and the system call of its write, one line below, or a
// write still under way in PostgreSQL a tenth of the ttl after the process was killed.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Member } from '@platformatic/coordinator'
import pg from 'pg'
import { endWithParent } from './end-with-parent.ts'
import { Lease } from './lease.ts'
import { Numbers, Refused } from './numbers.ts'
import { number, text } from './settings.ts'

/** Milliseconds for which open connections are answered once the port is closed. */
const lastAnswersMs = 300

endWithParent()
const memberId = text('MEMBER_ID')
const ttl = number('TTL', 10)
const heartbeatMs = number('HEARTBEAT', ttl * 1000 / 3)

// Idle connections end with a restart of PostgreSQL, each with an 'error'.
const pool = new pg.Pool({ connectionString: text('PG_URL'), max: number('POOL_MAX', 4), connectionTimeoutMillis: 2000 })
pool.on('error', () => {})
// The pool listens to idle connections alone. One that breaks in use fails its query, which is enough.
pool.on('connect', client => { client.on('error', () => {}) })
const numbers = new Numbers(pool, text('SCHEMA'), memberId)

const server = createServer((request, response) => { serve(request, response).catch(error => response.destroy(error)) })
server.keepAliveTimeout = 60_000
server.listen(number('PORT', 0), text('HOST', '127.0.0.1'))
await once(server, 'listening')
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const member = new Member({
  redis: text('REDIS_URL'),
  keyPrefix: text('KEY_PREFIX'),
  memberIndex: true,
  memberId,
  address,
  ttl,
  // A heartbeat that hangs for longer than the ttl would hold up those after it.
  storeTimeout: Math.max(200, ttl * 500),
  getLoad: () => numbers.size
})
const lease = new Lease({ member, ttlMs: ttl * 1000, heartbeatMs, held: () => numbers.held(), drop: id => numbers.drop(id) })
let isLeaving = false

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, leave)
await lease.start()
process.stdout.write(`${JSON.stringify({ ready: true, address, memberId })}\n`)

async function serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
  const destinationId = decodeURIComponent((request.url ?? '').slice(1))
  const { incarnation } = member
  try {
    const writeId = await readBody(request)
    const current = request.method === 'POST' ? await numbers.write(destinationId, writeId, lease) : await numbers.read(destinationId, lease)
    answer(response, 200, { memberId, incarnation, number: current })
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    answer(response, 503, { memberId, incarnation, code: error.code })
  }
}

function answer (response: ServerResponse, status: number, body: object): void {
  const headers = { 'content-type': 'application/json', ...(isLeaving ? { connection: 'close' } : {}) }
  response.writeHead(status, headers).end(JSON.stringify(body))
}

async function readBody (request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  return body
}

async function leave (): Promise<void> {
  isLeaving = true
  numbers.setGate('draining')
  // With Valkey away the record ends with its ttl: this pod leaves all the same.
  await member.setDraining(true).catch(() => {})
  numbers.setGate('closed')
  await numbers.settle()
  for (const destinationId of numbers.held()) numbers.drop(destinationId)
  await lease.stop()
  await member.deregister().catch(() => {})
  // The port alone: what comes on an open connection is still refused by an answer, the last on it. Cut off, the coordinator could not tell
  // whether its request was carried out.
  const closed = once(server, 'close')
  NetServer.prototype.close.call(server)
  await sleep(lastAnswersMs)
  server.closeIdleConnections()
  setTimeout(() => server.closeAllConnections(), 2000).unref()
  await Promise.all([closed, member.close(), pool.end()])
}
