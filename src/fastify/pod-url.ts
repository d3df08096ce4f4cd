import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { refuse } from './refusal.ts'
import type { Refusal } from './refusal.ts'

interface Base {
  readonly origin: string
  /** The origin with a slash, made once: reply-from looks it up by its text. */
  readonly root: string
  /** The path of the address, without a slash at its end. */
  readonly path: string
}

// Parsing an address costs more than all else that is done here, and there are as many of them as pods.
const bases = new LRUCache<string, Base>({ max: 1000 })

/** @throws TypeError for an address that is none */
function parseAddress (address: string): Base {
  const known = bases.get(address)
  if (known !== undefined) return known
  const { protocol, origin, pathname } = new URL(address)
  if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError(`Expected a pod's address to be an http or https URL, got one of scheme ${protocol}`)
  const base = { origin, root: `${origin}/`, path: pathname.replace(/\/+$/, '') }
  bases.set(address, base)
  return base
}

/** Where a request goes. */
export interface Location {
  readonly origin: string
  /** The origin with a slash. */
  readonly root: string
  readonly path: string
}

/** Where a request goes: the pod's origin, and the path as it came behind the base path of the address. @throws TypeError for an address that is none */
function locate (address: string, requestTarget: string): Location {
  const { origin, root, path: base } = parseAddress(address)
  // The absolute form names a host, which must not decide where the request goes.
  const path = requestTarget.startsWith('/') ? requestTarget : requestTarget.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '')
  return { origin, root, path: base + (path.startsWith('/') ? path : `/${path}`) }
}

/** Whether a URL leaves the path as it is: reply-from's own sender resolves dots, backslashes and signs that have to be escaped. */
function isTidy ({ origin, path }: Location): boolean {
  const { pathname, search } = new URL(`${origin}${path}`)
  return path === `${pathname}${search}` || path === `${pathname}?`
}

/**
 * Where a request goes at a pod of this address, or why it cannot.
 * @param isExact the application has our sender, which sends any path as it is
 */
export function locateFor (request: FastifyRequest, address: string, isExact: boolean): Location | Refusal {
  try {
    const where = locate(address, request.raw.url ?? '/')
    return isExact || isTidy(where) ? where : refuse('PLT_COORDINATOR_INVALID_PATH')
  } catch (cause) {
    return refuse('PLT_COORDINATOR_POD_UNREACHABLE', { cause })
  }
}
