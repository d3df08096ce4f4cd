import type { Bench, RowGroup } from '../bench.ts'
import type { Pair, Side } from '../compare.ts'
import type { Meter } from '../cpu.ts'
import { addMembers, bindDestinations } from '../fixtures.ts'
import { Forked } from '../processes/forked.ts'
import type { ClosedLoad, OpenLoad, Requests } from '../processes/load.ts'

const destinations = 64
const connections = 32
const kinds = [
  { name: 'get', method: 'GET', bodyBytes: 0 },
  { name: 'post-1k', method: 'POST', bodyBytes: 1024 },
  { name: 'post-64k', method: 'POST', bodyBytes: 64 * 1024 }
] as const
type Kind = typeof kinds[number]

/** The ways through the application (see processes/coordinator-app.ts), by the letter of their route. */
const ways = {
  cached: ['h', 'lookupAndProxy'],
  uncached: ['u', 'lookupAndProxy, cache: false'],
  via: ['v', 'proxyVia a fixed target'],
  fixed: ['f', 'reply.from with the same duties'],
  bare: ['b', 'bare reply.from'],
  peer: ['p', '@fastify/http-proxy'],
  create: ['c', 'pickAndRegister'],
  get: ['g', 'bare reply.from and one GET'],
  signal: ['1', 'with a signal, an emitter'],
  abortSignal: ['7', 'with a signal, an AbortSignal'],
  timeout: ['2', 'with a timeout'],
  requestHeaders: ['3', 'with the duties on request headers'],
  replyHeaders: ['4', 'with the duties on reply headers'],
  failures: ['5', 'with failures answered, none retried'],
  heldBody: ['6', 'with the body held aside']
} as const
type Way = keyof typeof ways

const duties = [
  ['signal', 'duty-signal'], ['abortSignal', 'duty-abort-signal'], ['timeout', 'duty-timeout'], ['requestHeaders', 'duty-request-headers'],
  ['replyHeaders', 'duty-reply-headers'], ['failures', 'duty-failures']
] as const

/** Proxied requests. The pod, the application and the load are processes of their own; the CPU is that of the application. */
export const http: RowGroup = {
  name: 'http',
  async run (bench) {
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const [pod, app, load] = (['pod', 'coordinator-app', 'load'] as const).map(name => new Forked(bench, name)) as [Forked, Forked, Forked]
    const podAddress = await pod.ask<string>('listen')
    await addMembers(bench, client, keyPrefix, 10, () => ({ address: podAddress }))
    await bindDestinations(client, keyPrefix, { name: 'destination', count: destinations, podsEach: 1, podCount: 10 })
    await client.set(`${keyPrefix}:plain`, 'x')
    const port = await app.ask<number>('open', { url: bench.url, keyPrefix, podAddress })
    const meter = bench.createMeter(app)
    const drive = createDriver(load, port)
    for (const kind of kinds) await compareWays(bench, kind, meter, drive)
    await compareCreates(bench, meter, drive)
    await compareTails(bench, meter, load, port)
  }
}

type Driver = (kind: Kind, ...ways: Way[]) => Record<string, Side>

/** Makes the sides that send requests of a kind by these ways. */
function createDriver (load: Forked, port: number): Driver {
  return (kind, ...names) => Object.fromEntries(names.map(name => [name, {
    label: ways[name][1],
    run: async count => {
      const details: ClosedLoad = { requests: toRequests(kind, name, port), count, connections }
      return { latenciesMs: await load.ask<Float64Array>('closed', details) }
    }
  } satisfies Side]))
}

async function compareWays (bench: Bench, kind: Kind, meter: Meter, drive: Driver): Promise<void> {
  const pair = (id: string, measured: Way, limit: Way): Pair => ({ id: `http/${kind.name}/${id}`, measured, limit, figure: 'client cpu' })
  await bench.compare({
    meter,
    segmentMs: 250,
    control: 'fixed',
    sides: drive(kind, 'cached', 'uncached', 'via', 'fixed', 'bare', 'peer'),
    pairs: [
      pair('cached', 'cached', 'fixed'),
      pair('uncached', 'uncached', 'fixed'),
      pair('duties', 'fixed', 'bare'),
      pair('proxy-via', 'via', 'fixed'),
      pair('cached-over-bare', 'cached', 'bare'),
      pair('cached-over-http-proxy', 'cached', 'peer'),
      pair('http-proxy-over-bare', 'peer', 'bare')
    ]
  })
  // One by one, for the list of what each costs; a body of 64 KiB has no header more than one of 1 KiB.
  const single = [...(kind.name === 'post-64k' ? [] : duties), ...(kind.name === 'get' ? [] : [['heldBody', 'duty-held-body']] as const)]
  await bench.compare({
    meter,
    segmentMs: 250,
    control: 'bare',
    sides: drive(kind, 'bare', ...single.map(([name]) => name)),
    pairs: single.map(([name, id]) => pair(id, name, 'bare'))
  })
}

async function compareCreates (bench: Bench, meter: Meter, drive: Driver): Promise<void> {
  await bench.compare({
    meter,
    segmentMs: 250,
    control: 'create',
    sides: drive(kinds[1], 'create', 'get'),
    pairs: [{ id: 'http/create', measured: 'create', limit: 'get', figure: 'client cpu' }]
  })
}

/** Latencies at half of what lookupAndProxy can take: the load does not wait for replies, so a slow one delays nothing that is due. */
async function compareTails (bench: Bench, meter: Meter, load: Forked, port: number): Promise<void> {
  const pairs = (['p50', 'p99'] as const).flatMap(figure => [
    { id: `http/tail/${figure}`, measured: 'cached', limit: 'bare', figure },
    { id: `http/tail/uncached-${figure}`, measured: 'uncached', limit: 'bare', figure }
  ])
  if (!pairs.some(({ id }) => bench.wants(id))) return
  const [kind] = kinds
  const ratePerSecond = bench.effort.isSmoke ? 200 : Math.round(await findSaturation(load, toRequests(kind, 'cached', port)) / 2)
  const side = (name: Way): Side => ({
    label: `${ways[name][1]} at ${ratePerSecond}/s`,
    run: async count => {
      const details: OpenLoad = { requests: toRequests(kind, name, port), count, ratePerSecond }
      return { latenciesMs: await load.ask<Float64Array>('open', details) }
    }
  })
  await bench.compare({
    meter,
    control: 'bare',
    operations: ratePerSecond,
    sides: { cached: side('cached'), uncached: side('uncached'), bare: side('bare') },
    pairs
  })
}

/** Requests a second that come through when 64 connections ask as fast as they can. */
async function findSaturation (load: Forked, requests: Requests): Promise<number> {
  const rates: number[] = []
  for (let at = 0; at < 5; at++) {
    const startedAt = performance.now()
    await load.ask('closed', { requests, count: 3000, connections: 64 } satisfies ClosedLoad)
    rates.push(3000 / (performance.now() - startedAt) * 1000)
  }
  return rates.sort((a, b) => a - b)[2] as number
}

function toRequests ({ method, bodyBytes }: Kind, way: Way, port: number): Requests {
  return { port, method, route: ways[way][0], destinations, bodyBytes }
}
