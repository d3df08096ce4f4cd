import type { TestContext } from 'node:test'
import type { Registry } from '../../src/index.ts'
import { setScene } from './store.ts'
import type { Scene } from './store.ts'

/** Moves a destination with plain commands, which no registry hears of. */
export async function moveUnheard (scene: Scene, destinationId: string, memberId: string): Promise<void> {
  const key = scene.key('destination', destinationId)
  await scene.raw.multi().del(key).sadd(key, memberId).exec()
}

/** A scene with the pods pod-1 and pod-2, whose records outlive every cache. */
export async function setPods (t: TestContext, url?: string): Promise<Scene> {
  const scene = setScene(t, url)
  for (const memberId of ['pod-1', 'pod-2']) await scene.rawMember(memberId, {}, 600)
  return scene
}

export async function ask (registry: Registry, destinationId: string): Promise<string | undefined> {
  return (await registry.resolveDestination(destinationId))?.memberId
}

/** Lets time go by in which nothing else of this process runs, as in an event loop that is blocked. */
export function block (ms: number): void {
  const end = performance.now() + ms
  while (performance.now() <= end); // the point is to let nothing else run
}
