import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** A way to the store on which replies can be held back: commands are executed, but who sent them does not hear of it yet. */
export interface ReplyLink {
  readonly url: string
  hold (): void
  release (): void
  /** True while a reply is waiting. */
  readonly hasHeld: boolean
}

/** Opens a link to the store, which is cut after the test. */
export async function openReplyLink (t: TestContext, storeUrl: string): Promise<ReplyLink> {
  const { hostname, port } = new URL(storeUrl)
  const sockets = new Set<Socket>()
  let isHolding = false
  const held: { socket: Socket, bytes: Buffer }[] = []

  const server = createServer(caller => {
    const store = connect(Number(port), hostname)
    for (const socket of [caller, store]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        caller.destroy()
        store.destroy()
      })
    }
    caller.pipe(store)
    store.on('data', bytes => {
      if (isHolding) held.push({ socket: caller, bytes })
      else caller.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })

  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold () { isHolding = true },
    release () {
      isHolding = false
      for (const { socket, bytes } of held.splice(0)) socket.write(bytes)
    },
    get hasHeld () { return held.length > 0 }
  }
}
