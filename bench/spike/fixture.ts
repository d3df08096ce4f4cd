import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Bench } from '../bench.ts'
import { addMembers, bindDestinations } from '../fixtures.ts'
import { Forked } from '../processes/forked.ts'
import type { Requests } from '../processes/load.ts'
import type { OpenWay } from './app.ts'
import type { Way } from './ways.ts'

const connections = 32
const destinations = 64

/** A way in its process, with a load of its own: the load keeps connections, and does not ask to whom they go. */
export interface Opened {
  readonly app: Forked
  /** Sends requests, as many at once as there are connections. Answers with the latencies in ms. */
  send (bodyBytes: number, count: number): Promise<Float64Array>
}

/** A pod and a store with bindings; the ways are opened on them one by one. */
export class SpikeFixture {
  readonly bench: Bench
  readonly #keyPrefix: string
  readonly #podAddress: string

  private constructor (bench: Bench, keyPrefix: string, podAddress: string) {
    this.bench = bench
    this.#keyPrefix = keyPrefix
    this.#podAddress = podAddress
  }

  /** Needs REDIS_URL, which with-store.ts sets, and the built package, which is built here. */
  static async open (): Promise<SpikeFixture> {
    build()
    const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6390'
    const bench = new Bench({ url, isSmoke: false, names: [], onResult: () => {}, onNote: console.error })
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    const pod = new Forked(bench, 'pod')
    const podAddress = await pod.ask<string>('listen')
    await addMembers(bench, client, keyPrefix, 10, () => ({ address: podAddress }))
    await bindDestinations(client, keyPrefix, { name: 'destination', count: destinations, podsEach: 1, podCount: 10 })
    return new SpikeFixture(bench, keyPrefix, podAddress)
  }

  async openWay (way: Way): Promise<Opened> {
    const app = new Forked(this.bench, '../spike/app')
    const details: OpenWay = { way, url: this.bench.url, keyPrefix: this.#keyPrefix, podAddress: this.#podAddress }
    const port = await app.ask<number>('open', details)
    const load = new Forked(this.bench, 'load')
    return {
      app,
      send: async (bodyBytes, count) => {
        const requests: Requests = { port, method: bodyBytes === 0 ? 'GET' : 'POST', route: 's', destinations, bodyBytes }
        return await load.ask<Float64Array>('closed', { requests, count, connections })
      }
    }
  }
}

function build (): void {
  const script = fileURLToPath(new URL('../../services/build.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', script, '--quiet'], { stdio: 'inherit' })
  if (status !== 0) throw new Error('The package could not be built')
}
