import type { World } from './world.ts'

/** The memberIds of the pods that the destinations live on, one each; fails for one that lives on several. */
export async function readOwners (world: World, destinationIds: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(destinationIds.map(async id => [id, (await world.ownerOf(id)).name] as const)))
}
