import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { answerQuestions } from './answer.ts'
import { ClientConnection } from './client-connection.ts'

export interface Requests {
  readonly port: number
  readonly method: 'GET' | 'POST'
  /** One letter: the way of the application under measurement. */
  readonly route: string
  /** Destinations that are asked for in turn: destination-0 and on. */
  readonly destinations: number
  readonly bodyBytes: number
}

/** As many requests as connections, each followed by the next. */
export interface ClosedLoad {
  readonly requests: Requests
  readonly count: number
  readonly connections: number
}

/** Requests at a steady rate, whatever became of the earlier ones. */
export interface OpenLoad {
  readonly requests: Requests
  readonly count: number
  readonly ratePerSecond: number
}

const connections: ClientConnection[] = []
const idle: ClientConnection[] = []
const prepared = new Map<string, readonly Buffer[]>()

answerQuestions({
  /** Answers with the latencies in ms. */
  async closed ({ requests, count, connections: wanted }: ClosedLoad) {
    const texts = prepare(requests)
    const pool = await take(wanted, requests.port)
    const latenciesMs = new Float64Array(count)
    let sent = 0
    await Promise.all(pool.map(async connection => {
      while (sent < count) {
        const turn = sent++
        const startedAt = performance.now()
        await connection.exchange(texts[turn % texts.length] as Buffer)
        latenciesMs[turn] = performance.now() - startedAt
      }
      idle.push(connection)
    }))
    return latenciesMs
  },
  /** Answers with the latencies in ms, counted from when a request was due: one that had to wait for its turn has waited. */
  async open ({ requests, count, ratePerSecond }: OpenLoad) {
    const texts = prepare(requests)
    const latenciesMs = new Float64Array(count)
    const all: Promise<void>[] = []
    const startedAt = performance.now()
    const send = async (turn: number): Promise<void> => {
      const [connection] = await take(1, requests.port)
      if (connection === undefined) throw new Error('No connection could be opened')
      await connection.exchange(texts[turn % texts.length] as Buffer)
      latenciesMs[turn] = performance.now() - startedAt - turn / ratePerSecond * 1000
      idle.push(connection)
    }
    while (all.length < count) {
      const due = Math.min(count, Math.floor((performance.now() - startedAt) / 1000 * ratePerSecond) + 1)
      while (all.length < due) all.push(send(all.length))
      await delay(1)
    }
    await Promise.all(all)
    return latenciesMs
  }
}, () => {
  for (const connection of connections) connection.close()
})

/** Takes idle connections, those used last first, and opens those that are missing. */
async function take (count: number, port: number): Promise<ClientConnection[]> {
  const taken: ClientConnection[] = []
  while (taken.length < count && idle.length > 0) {
    const connection = idle.pop() as ClientConnection
    // One that was idle for long the application has closed.
    if (connection.isOpen) taken.push(connection)
  }
  const opened = await Promise.all(Array.from({ length: count - taken.length }, () => ClientConnection.open(port)))
  connections.push(...opened)
  return [...taken, ...opened]
}

/** Writes all requests once: the generator is to take as little of the machine as it can. */
function prepare ({ method, route, destinations, bodyBytes, port }: Requests): readonly Buffer[] {
  const key = [method, route, destinations, bodyBytes, port].join()
  const earlier = prepared.get(key)
  if (earlier !== undefined) return earlier
  const body = Buffer.alloc(bodyBytes, 'x')
  const bodyHeaders = method === 'GET' ? '' : `content-type: application/octet-stream\r\ncontent-length: ${bodyBytes}\r\n`
  const requests = Array.from({ length: destinations }, (_, at) => {
    const head = `${method} /${route}/destination-${at} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nuser-agent: bench\r\naccept: */*\r\nconnection: keep-alive\r\n${bodyHeaders}\r\n`
    return Buffer.concat([Buffer.from(head), body])
  })
  prepared.set(key, requests)
  return requests
}
