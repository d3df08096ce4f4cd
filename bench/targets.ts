/** What a row is held to. One table for `--check`, the printed table and bench/README.md. */
export interface Target {
  /** Id of the result it judges; its first part names the group, and the file in rows/. */
  readonly id: string
  readonly what: string
  /** What it is held against. */
  readonly limit: string
  /** The quantity that is judged. */
  readonly figure: string
  /** Most that is allowed, where a cost is judged. */
  readonly atMost?: number
  /** Least that is allowed, where a share of the limit is judged. */
  readonly atLeast?: number
}

const times = 'times its CPU'
const share = 'share of its rate by CPU'
const asyncGet = 'await of an async function around one lru-cache get'
const get64 = 'GET through the same client, 64 in flight'
const fixed = 'reply.from to a fixed address with the same signal, timeout and header duties'
const bodies = [['get', 'GET'], ['post-1k', 'POST of 1 KiB'], ['post-64k', 'POST of 64 KiB']] as const

/** The rows of issue 5 that have a target, in its order. */
export const targets: readonly Target[] = [
  ...[1, 3].flatMap(pods => [1, 64].map(inFlight => ({
    id: `cached/${podsOf(pods)}/${inFlight}-in-flight`,
    what: `cached resolve, ${podsOf(pods, ' ')}, ${inFlight} in flight`,
    limit: asyncGet,
    figure: times,
    atMost: pods === 1 ? 1.6 : 2
  }))),

  { id: 'uncached/1-pod/64-in-flight', what: 'uncached resolve, 1 pod, 64 in flight', limit: get64, figure: share, atLeast: 0.9 },
  { id: 'uncached/3-pods/64-in-flight', what: 'uncached resolve, 3 pods, 64 in flight', limit: get64, figure: share, atLeast: 0.55 },
  ...[1, 3].map(pods => ({
    id: `uncached/${podsOf(pods)}/1-in-flight`,
    what: `uncached resolve, ${podsOf(pods, ' ')}, 1 in flight`,
    limit: 'GET through the same client, 1 in flight',
    figure: 'times its p50',
    atMost: 1.3
  })),

  ...[1, 16].flatMap(registries => [
    ...[10, 100, 1000].map(pods => ({
      id: `claims/${registries}-${registries === 1 ? 'registry' : 'registries'}/${pods}-pods`,
      what: `first touch, ${pods.toLocaleString('en')} pods, ${registries === 1 ? '1 registry' : '16 registries in 4 processes'}`,
      limit: registries === 1 ? get64 : 'GET through the same clients, 64 in flight in each process',
      figure: share,
      atLeast: 0.5
    })),
    {
      id: `claims/${registries}-${registries === 1 ? 'registry' : 'registries'}/1000-over-10`,
      what: `first touch, 1,000 pods, ${registries === 1 ? '1 registry' : '16 registries in 4 processes'}`,
      limit: 'the same with 10 pods',
      figure: times,
      atMost: 1.2
    }
  ]),
  { id: 'claims/one-id/bindings', what: '1,000 concurrent resolves of one unbound id, 4 registries', limit: '-', figure: 'bindings', atMost: 1 },
  { id: 'claims/one-id/commands', what: '1,000 concurrent resolves of one unbound id, 4 registries', limit: '-', figure: 'commands the store executed, those in scripts too', atMost: 20 },

  { id: 'storm/reassign', what: 'reassignment of the 10,000 destinations of a dead pod, 64 in flight', limit: 'first touch', figure: share, atLeast: 0.7 },
  { id: 'lock/resolve', what: 'resolveLock, 64 in flight', limit: get64, figure: share, atLeast: 0.8 },

  ...bodies.flatMap(([name, what]) => [
    { id: `http/${name}/cached`, what: `lookupAndProxy, ${what}, default cache`, limit: fixed, figure: times, atMost: 1.10 },
    { id: `http/${name}/uncached`, what: `lookupAndProxy, ${what}, cache: false`, limit: fixed, figure: times, atMost: 1.25 },
    { id: `http/${name}/duties`, what: `all duties together, ${what}`, limit: 'bare reply.from', figure: times, atMost: 1.35 }
  ]),
  { id: 'http/create', what: 'pickAndRegister, small replies', limit: 'bare reply.from and one GET', figure: share, atLeast: 0.9 },

  { id: 'heartbeats/10000-pods', what: 'heartbeats of 10,000 pods at one per 10 s', limit: 'one core', figure: '% of it, CPU of the store', atMost: 4 },

  { id: 'memory/binding', what: 'memory in Valkey of a binding, 36-character ids', limit: '-', figure: 'bytes', atMost: 170 },
  { id: 'memory/binding-indexed', what: 'the same with memberIndex', limit: '-', figure: 'bytes', atMost: 280 },
  { id: 'memory/coordinator', what: 'memory of a coordinator with 10,000 cached fan-out bindings, before and after the churn, at rest', limit: 'an idle process', figure: 'MB of resident memory more', atMost: 25 },
  { id: 'memory/churn', what: 'growth of a coordinator in 24 simulated hours of churn, from the 4th on', limit: '-', figure: 'MB of heap', atMost: 1 },

  ...(['resolve', 'claim'] as const).map(what => ({
    id: `growth/destinations/${what}`,
    what: `${what} among 1,000,000 destinations`,
    limit: 'the same among 1,000',
    figure: times,
    atMost: 1.2
  })),
  ...[['resolve', 'resolve'], ['claim', 'claim'], ['claim-least-loaded', 'claim by least-loaded']].map(([id, what]) => ({
    id: `growth/pods/${id}`,
    what: `${what} among 1,000 pods`,
    limit: 'the same among 10',
    figure: times,
    atMost: 1.2
  })),
  { id: 'growth/scans', what: 'commands that walk a keyspace or a large collection, all growth rows', limit: '-', figure: 'calls of KEYS, SCAN, SSCAN, HSCAN, ZSCAN', atMost: 0 },

  { id: 'start/member', what: 'import { Member } from the built package', limit: 'import(\'iovalkey\')', figure: times, atMost: 1.3 },
  { id: 'start/http-modules', what: 'modules of undici, reply-from and Fastify after that import', limit: '-', figure: 'modules', atMost: 0 },

  {
    id: 'placement/fresh-pod',
    what: '10,000 claims between two heartbeats, 16 registries in 4 processes, 100 pods, one of them fresh',
    limit: 'level of a perfect least-loaded placement',
    figure: 'times it, the highest load',
    atMost: 1.05
  }
]

const byId = new Map(targets.map(target => [target.id, target]))

export function findTarget (id: string): Target | undefined {
  return byId.get(id)
}

/** A target as text: `<= 1.6`. */
export function formatTarget ({ atMost, atLeast }: Target): string {
  return atMost === undefined ? `>= ${atLeast}` : `<= ${atMost}`
}

/** The table of bench/README.md. */
export function toMarkdown (): string {
  const rows = targets.map(target => `| \`${target.id}\` | ${target.what} | ${target.limit} | ${target.figure} | ${formatTarget(target)} |`)
  return ['| row | what | held against | judged | target |', '|---|---|---|---|---|', ...rows].join('\n')
}

function podsOf (count: number, separator = '-'): string {
  return `${count}${separator}pod${count === 1 ? '' : 's'}`
}
