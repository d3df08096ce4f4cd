import { Agent, createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers all requests itself, as short as the pod does. @returns the port */
export async function listenAndAnswer (): Promise<number> {
  return await listen(createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': fixedReply.length })
      response.end(fixedReply)
    })
  }))
}

export const fixedReply = '{"id":"created-000000000000-0","status":"running"}'

/** Sends each request on by node:http, with no duty at all. @returns the port */
export async function listenAndForward (address: string): Promise<number> {
  const { hostname, port } = new URL(address)
  const agent = new Agent({ keepAlive: true })
  return await listen(createServer((request, response) => {
    const { method, url, headers } = request
    const sent = send({ hostname, port, method, path: url, headers, agent }, reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(response)
    })
    sent.on('error', () => response.destroy())
    if (method === 'GET') sent.end()
    else request.pipe(sent)
  }))
}

async function listen (listener: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return (listener.address() as AddressInfo).port
}
