import { Redis } from 'iovalkey'
import { Registry } from '@platformatic/coordinator'
import type { StrategyName } from '@platformatic/coordinator'
import { found, inFlight } from '../fixtures.ts'
import { answerQuestions } from './answer.ts'

/** Registries of one prefix, each on a connection of its own, as coordinators would be; the prefixes share these. */
export interface OpenRegistries {
  readonly url: string
  readonly keyPrefix: string
  readonly count: number
  readonly strategy: StrategyName
}

export interface RunClaims {
  readonly keyPrefix: string
  readonly count: number
  /** Calls in flight, over all registries of this process. */
  readonly concurrency: number
  /** Starts the ids, which are new. */
  readonly name: string
}

const clients: Redis[] = []
const registriesOf = new Map<string, Registry[]>()

answerQuestions({
  async open ({ url, keyPrefix, count, strategy }: OpenRegistries) {
    while (clients.length < count) clients.push(new Redis(url))
    const registries = clients.map(redis => new Registry({ redis, keyPrefix, strategy, cache: false }))
    registriesOf.set(keyPrefix, registries)
    await Promise.all(registries.map(registry => registry.listLiveMembers()))
  },
  /** Claims new destinations, the registries in turn. Answers with the claims that fell to each pod. */
  async claim ({ keyPrefix, count, concurrency, name }: RunClaims) {
    const registries = registriesOf.get(keyPrefix) ?? []
    const claims = new Map<string, number>()
    await inFlight(concurrency, async turn => {
      const registry = registries[turn % registries.length] as Registry
      const { memberId } = await found(registry.resolveDestination(`${name}-${turn}`, { claimOnMiss: true }))
      claims.set(memberId, (claims.get(memberId) ?? 0) + 1)
    })(count)
    return claims
  },
  async get ({ keyPrefix, count, concurrency }: RunClaims) {
    await inFlight(concurrency, turn => (clients[turn % clients.length] as Redis).get(`${keyPrefix}:plain`))(count)
  }
}, async () => {
  await Promise.all([...registriesOf.values()].flat().map(registry => registry.close()))
  await Promise.all(clients.map(client => client.quit()))
})
