import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

/** Gives a port of 127.0.0.1 that is free now. Another process can take it before it is used. */
export async function findFreePort (): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
