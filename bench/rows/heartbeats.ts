import { setTimeout as delay } from 'node:timers/promises'
import type { Member } from '@platformatic/coordinator'
import type { RowGroup } from '../bench.ts'
import { addMembers } from '../fixtures.ts'

const beatsPerSecond = 1000
const connectionCount = 100

/** What the heartbeats of a large fleet cost the store, at their pace: each comes alone, so none is cheaper for coming with others. */
export const heartbeats: RowGroup = {
  name: 'heartbeats',
  async run (bench) {
    const podCount = bench.size(10_000, 200)
    const client = bench.connect()
    const keyPrefix = bench.createPrefix(client)
    // The members share connections, more of them than answer at once: a pod has one of its own, and 10,000 are more than a store takes.
    const clients = Array.from({ length: bench.size(connectionCount, 10) }, () => bench.connect())
    const members: Member[] = await addMembers(bench, client, keyPrefix, podCount, at => ({ redis: clients[at % clients.length] ?? client }))
    let next = 0
    const beat = async (): Promise<void> => {
      const member = members[next++ % podCount] as Member
      if (!await member.heartbeat()) throw new Error('The bench is wrong: a heartbeat was not written')
    }

    await bench.compare({
      meter: bench.createMeter(),
      control: 'beats',
      operations: beatsPerSecond,
      sides: {
        beats: { label: `${beatsPerSecond} heartbeats a second`, run: count => pace(count, beat) },
        get: { label: `${beatsPerSecond} GETs a second`, run: count => pace(count, async () => { await (clients[next++ % clients.length] ?? client).get(`${keyPrefix}:plain`) }) },
        idle: { label: 'nothing for as long', run: async count => await delay(count / beatsPerSecond * 1000) }
      },
      pairs: [
        { id: 'heartbeats/10000-pods', measured: 'beats', limit: 'idle', figure: 'store share' },
        // Most of it is the price of any command that comes alone.
        { id: 'heartbeats/plain-get', measured: 'get', limit: 'idle', figure: 'store share' }
      ]
    })
  }
}

/** Starts operations at an even pace, whatever the earlier ones do, and waits for all. */
async function pace (count: number, operation: () => Promise<void>): Promise<void> {
  const startedAt = performance.now()
  const all: Promise<void>[] = []
  while (all.length < count) {
    const due = Math.min(count, Math.ceil((performance.now() - startedAt) / 1000 * beatsPerSecond))
    while (all.length < due) all.push(operation())
    await delay(1)
  }
  await Promise.all(all)
}
