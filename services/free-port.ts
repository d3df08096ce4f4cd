import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

const host = '127.0.0.1'
const lastingPorts = { first: 20_000, count: 12_000 }
const lastingTries = 20

/** Gives a port of 127.0.0.1 that is free now. Another process can take it before it is used. */
export async function findFreePort (): Promise<number> {
  return probe(0)
}

/**
 * Gives a port of 127.0.0.1 that is free now and stays so while its owner is away for a while: it lies below those that the system
 * hands out by itself, of which each outgoing connection takes one.
 */
export async function findLastingPort (random: () => number = Math.random): Promise<number> {
  for (let tries = 0; tries < lastingTries; tries++) {
    try {
      return await probe(lastingPorts.first + Math.floor(random() * lastingPorts.count))
    } catch {
      // Taken: look elsewhere.
    }
  }
  return findFreePort()
}

async function probe (wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(wanted, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
