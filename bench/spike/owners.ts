import type { Profiler } from 'node:inspector'

/** A function in a profile and what it called, with the time in samples. */
export interface Frame {
  readonly name: string
  readonly owner: string
  self: number
  total: number
  readonly children: Map<string, Frame>
}

export const owners = ['ours', 'reply-from', 'Fastify', 'undici', 'streams, events', 'node:http, net', 'ticks, promises, timers', 'rest of node', 'writing to sockets', 'GC', 'outside JavaScript', 'rest'] as const
type Owner = typeof owners[number]

const packages: ReadonlyMap<string, Owner> = new Map<string, Owner>([
  ...['@fastify/reply-from', 'fast-content-type-parse', 'fast-querystring', 'toad-cache'].map(name => [name, 'reply-from'] as const),
  ...['fastify', 'find-my-way', 'light-my-request', 'avvio', 'pino', 'abstract-logging', 'process-warning'].map(name => [name, 'Fastify'] as const),
  ['lru-cache', 'ours'],
  ['undici', 'undici']
])
// Of node: what its JavaScript calls to hand bytes to the system.
const writes = new Set(['writev', 'writeLatin1String', 'writeUtf8String', 'writeBuffer', 'writeAsciiString', 'writeUcs2String'])

/**
 * Makes a tree of a profile, the lines of one function added up. What is native belongs to who called it, save writes to sockets, GC, and
 * what runs outside of JavaScript. Idle time is left out. Names hold no path of this machine.
 */
export function toTree ({ nodes, samples = [] }: Profiler.Profile): Frame {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const parents = new Map<number, number>()
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id)
  const root: Frame = { name: 'all', owner: 'rest', self: 0, total: 0, children: new Map() }
  const hits = new Map<number, number>()
  for (const sample of samples) hits.set(sample, (hits.get(sample) ?? 0) + 1)
  for (const [id, count] of hits) {
    const path: Profiler.ProfileNode[] = []
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) path.unshift(byId.get(at) as Profiler.ProfileNode)
    if (path.at(-1)?.callFrame.functionName === '(idle)') continue
    let frame = root
    root.total += count
    for (const { callFrame } of path.slice(1)) {
      frame = descend(frame, callFrame)
      frame.total += count
    }
    frame.self += count
  }
  return root
}

/** The share of each owner in percent, by self time. */
export function toShares (root: Frame): Map<string, number> {
  const shares = new Map<string, number>(owners.map(owner => [owner, 0]))
  const add = (frame: Frame): void => {
    shares.set(frame.owner, (shares.get(frame.owner) ?? 0) + frame.self / root.total * 100)
    for (const child of frame.children.values()) add(child)
  }
  add(root)
  return shares
}

function descend (frame: Frame, { functionName, url }: Profiler.ProfileNode['callFrame']): Frame {
  const owner = ownerOf(functionName, url) ?? frame.owner
  const name = `${functionName === '' ? '(anonymous)' : functionName} ${placeOf(url)}`.trim()
  const known = frame.children.get(name)
  if (known !== undefined) return known
  const child: Frame = { name, owner, self: 0, total: 0, children: new Map() }
  frame.children.set(name, child)
  return child
}

function ownerOf (name: string, url: string): Owner | undefined {
  if (name === '(garbage collector)') return 'GC'
  if (name === '(program)') return 'outside JavaScript'
  if (writes.has(name) && url === '') return 'writing to sockets'
  if (url === '') return undefined
  if (url.startsWith('wasm:')) return 'undici'
  if (url.startsWith('node:')) return ofNode(url)
  const [, scoped] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? []
  if (scoped !== undefined) return packages.get(scoped) ?? 'rest'
  return /\/(dist|src)\//.test(url) ? 'ours' : 'rest'
}

function ofNode (url: string): Owner {
  if (/stream(?!_base)|events/.test(url)) return 'streams, events'
  if (/http|net$|stream_base|_incoming|_outgoing/.test(url)) return 'node:http, net'
  return /task_queues|timers|async_hooks|promise|process\//.test(url) ? 'ticks, promises, timers' : 'rest of node'
}

/** A package with a file in it, a file of this project, or a module of node. */
function placeOf (url: string): string {
  if (url.startsWith('wasm:')) return 'llhttp'
  if (url.startsWith('node:') || url === '') return url
  return /.*\/node_modules\/(.*)/.exec(url)?.[1] ?? /\/((?:dist|src|bench)\/.*)/.exec(url)?.[1]?.replace(/\?.*/, '') ?? ''
}
