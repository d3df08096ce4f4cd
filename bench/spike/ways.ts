/** The ways a request is answered or passed on, each in a process of its own. */
export const ways = {
  'node-reply': 'node:http answers',
  'fastify-reply': 'Fastify answers',
  'node-http': 'node:http passes on',
  direct: 'Fastify, dispatch to the raw reply',
  request: 'Fastify, undici.request, reply.send',
  bare: 'bare reply.from',
  'forward-raw': 'own forwarder, raw reply',
  'forward-bytes': 'own forwarder, reply.send of bytes',
  'forward-stream': 'own forwarder, reply.send of a stream',
  'ours-built': 'lookupAndProxy, built package',
  ours: 'lookupAndProxy, by tsx'
} as const

export type Way = keyof typeof ways

export const allWays = Object.keys(ways) as Way[]
