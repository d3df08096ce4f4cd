import type { TestContext } from 'node:test'
import type { CoordinatorPluginOptions, PickAndRegisterOptions } from '../../src/index.ts'
import type { Pod } from './http-pod.ts'
import { setHttpScene } from './http-scene.ts'
import type { HttpScene } from './http-scene.ts'
import { toRequest } from './raw-http.ts'
import type { RawReply } from './raw-http.ts'

export interface CreateScene {
  scene: HttpScene
  pod: Pod & Awaited<ReturnType<HttpScene['pod']>>
  create (): Promise<RawReply>
  /** Ids of all that is bound. */
  bound (): Promise<string[]>
  /** Codes of what was logged as a warning or worse. */
  warnings (): unknown[]
}

/** An application with a create route, POST /d, and one pod that answers it. */
export async function setCreate (t: TestContext, status: number, headers: Record<string, string | string[]>, body: string | Buffer, options: Partial<PickAndRegisterOptions> = {}, plugin: Partial<CoordinatorPluginOptions> = {}): Promise<CreateScene> {
  const scene = await setHttpScene(t, { plugin })
  const pod = await scene.pod('pod-1', { answer: response => { response.writeHead(status, headers).end(body) } })
  scene.app.post('/d', scene.coordinator.pickAndRegister({ registerIdFrom: (reply: { id: unknown }) => reply.id, onResult: scene.onResult, ...options }))
  return {
    scene,
    pod,
    create: () => scene.ask(toRequest('POST /d', { 'content-type': 'application/json' }, '{ "n": 1.0 }')),
    bound: async () => (await scene.keys()).filter(name => name.startsWith('destination:')).map(name => name.slice('destination:'.length)),
    warnings: () => scene.logs.filter(({ level }) => level >= 40).map(({ code }) => code)
  }
}
