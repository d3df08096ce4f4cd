import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import { coordinatorPlugin } from '../../src/index.ts'
import type { Coordinator, CoordinatorPluginOptions, HelperResult, Member, MemberOptions } from '../../src/index.ts'
import { atEnd } from './at-end.ts'
import { startPod } from './http-pod.ts'
import type { Answer, Pod } from './http-pod.ts'
import { openClient } from './raw-http.ts'
import type { RawClient, RawReply } from './raw-http.ts'
import { setScene, storeUrl } from './store.ts'
import type { Scene } from './store.ts'

export interface LogLine extends Record<string, unknown> {
  level: number
  msg: string
}

export interface HttpSceneOptions {
  /** Options of the plugin; false: the application does not have it. The store and the prefix are those of the scene. */
  plugin?: Partial<CoordinatorPluginOptions> | false
  fastify?: FastifyServerOptions
}

/** An application with the plugin, and pods registered in a prefix of their own; all of it is closed after the test. */
export interface HttpScene extends Scene {
  readonly app: FastifyInstance
  readonly coordinator: Coordinator
  /** What `onResult: scene.onResult` was told. */
  readonly results: HelperResult[]
  onResult (result: HelperResult): void
  /** Everything the application logged. */
  readonly logs: LogLine[]
  /** Starts a pod, registers it, and binds destinations to it. */
  pod (memberId: string, options?: PodOptions): Promise<Pod & { member: Member }>
  /** Registers what listens elsewhere, and binds destinations to it. */
  register (memberId: string, address: string, destinationIds?: readonly string[], options?: Partial<MemberOptions>): Promise<Member>
  /** Listens on a free port, once the routes are there; later calls give the same. */
  listen (): Promise<{ port: number, url: string }>
  /** Opens a connection to the application, which listens from then on. */
  client (): Promise<RawClient>
  /** Sends one request on a connection of its own and reads the reply. */
  ask (bytes: string | Buffer): Promise<RawReply>
}

export interface PodOptions {
  answer?: Answer
  destinationIds?: readonly string[]
  /** Path behind the address the pod is registered with. */
  basePath?: string
  member?: Partial<MemberOptions>
}

export async function setHttpScene (t: TestContext, { plugin = {}, fastify = {} }: HttpSceneOptions = {}): Promise<HttpScene> {
  const logs: LogLine[] = []
  const stream = { write: (line: string): void => { logs.push(JSON.parse(line) as LogLine) } }
  const app: FastifyInstance = Fastify({ logger: { level: 'info', stream }, ...fastify } as FastifyServerOptions) as never
  // Before the scene, whose keys go last, when nobody writes any more.
  atEnd(t, () => app.close())
  const scene = setScene(t)
  if (plugin !== false) await app.register(coordinatorPlugin, { redis: storeUrl, keyPrefix: scene.keyPrefix, ...plugin } as CoordinatorPluginOptions)

  const results: HelperResult[] = []
  let listening: Promise<{ port: number, url: string }> | undefined
  const register = async (memberId: string, address: string, destinationIds: readonly string[] = [], options: Partial<MemberOptions> = {}): Promise<Member> => {
    const member = await scene.liveMember(memberId, { address, ...options })
    for (const id of destinationIds) await member.addToDestination(id)
    return member
  }
  const httpScene: HttpScene = {
    ...scene,
    app,
    get coordinator () { return app[(plugin === false ? 'coordinator' : plugin.decorateAs ?? 'coordinator') as 'coordinator'] },
    results,
    onResult: result => { results.push(result) },
    logs,
    register,
    async pod (memberId, { answer, destinationIds, basePath = '', member } = {}) {
      const pod = await startPod(t, answer)
      return Object.assign(pod, { member: await register(memberId, pod.address + basePath, destinationIds, member) })
    },
    listen: () => (listening ??= listen(app)),
    client: async () => await openClient(t, (await httpScene.listen()).port),
    async ask (bytes) {
      const client = await httpScene.client()
      const reply = await client.ask(bytes)
      client.socket.destroy()
      return reply
    }
  }
  return httpScene
}

async function listen (app: FastifyInstance): Promise<{ port: number, url: string }> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}` }
}
