import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'iovalkey'
import { Registry } from '@platformatic/coordinator'
import { found, inFlight, scatter } from '../fixtures.ts'
import { answerQuestions } from './answer.ts'

export interface OpenCoordinator {
  readonly url: string
  readonly keyPrefix: string
}

export interface Fill {
  /** Destinations `<name>-0` and on, each of several pods. */
  readonly name: string
  readonly count: number
}

export interface Churn extends Fill {
  readonly seconds: number
  readonly resolvesPerSecond: number
}

export interface Rest {
  readonly deadlineMs: number
}

export interface MemoryUse {
  /** Resident memory of the process. */
  rssBytes: number
  /** What is alive on the heap, and what it holds outside. */
  heapBytes: number
}

/** Unused heap that V8 keeps. */
const restBytes = 6 * 1024 * 1024

let client: Redis | undefined
let registry: Registry | undefined
/** Milliseconds that were skipped: the clock by which the library's cache and member view age is put forward. */
let skippedMs = 0
let isSkipping = false

answerQuestions({
  open ({ url, keyPrefix }: OpenCoordinator) {
    client = new Redis(url)
    registry = new Registry({ redis: client, keyPrefix })
    return client.ping()
  },
  async fill ({ name, count }: Fill) {
    const ids = scatter(count)
    await inFlight(64, () => found(requireRegistry().resolveDestination(`${name}-${ids()}`)))(count)
  },
  /** Lives through so many seconds of traffic, one after the other, as fast as it goes. */
  async churn ({ name, count, seconds, resolvesPerSecond }: Churn) {
    if (!isSkipping) skipTime()
    const ids = scatter(count)
    for (let second = 0; second < seconds; second++) {
      await inFlight(64, () => found(requireRegistry().resolveDestination(`${name}-${ids()}`)))(resolvesPerSecond)
      skippedMs += 1000
    }
  },
  measure: readMemory,
  /** As `measure`, once V8 has given back what it does not use: it does so some seconds after the traffic has stopped. */
  async rest ({ deadlineMs }: Rest): Promise<MemoryUse> {
    await readMemory()
    const endsAt = Date.now() + deadlineMs
    const isAtRest = (): boolean => {
      const { heapTotal, heapUsed } = process.memoryUsage()
      return heapTotal - heapUsed < restBytes
    }
    while (!isAtRest() && Date.now() < endsAt) await delay(200)
    return await readMemory()
  }
}, async () => {
  await registry?.close()
  await client?.quit()
})

async function readMemory (): Promise<MemoryUse> {
  // Finalizers of one collection make garbage for the next.
  for (let times = 0; times < 4; times++) {
    globalThis.gc?.()
    await turn()
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rssBytes: rss, heapBytes: heapUsed + external }
}

function skipTime (): void {
  const now = performance.now.bind(performance)
  performance.now = () => now() + skippedMs
  isSkipping = true
}

function requireRegistry (): Registry {
  if (registry === undefined) throw new Error('open comes first')
  return registry
}
