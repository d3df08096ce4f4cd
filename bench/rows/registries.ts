import type { StrategyName } from '@platformatic/coordinator'
import type { Bench } from '../bench.ts'
import { Forked, ForkedGroup } from '../processes/forked.ts'
import type { OpenRegistries } from '../processes/registries.ts'

/** 16 registries are in so many processes. */
export const processCount = 4
export const registriesEach = 4

/** Starts the processes for 16 registries. */
export function forkRegistries (bench: Bench): ForkedGroup {
  return new ForkedGroup(Array.from({ length: processCount }, () => new Forked(bench, 'registries')))
}

/** Opens 16 registries of a prefix in them. */
export async function openRegistries (bench: Bench, forked: ForkedGroup, keyPrefix: string, strategy: StrategyName): Promise<void> {
  const details: OpenRegistries = { url: bench.url, keyPrefix, count: registriesEach, strategy }
  await forked.ask('open', () => details)
}
