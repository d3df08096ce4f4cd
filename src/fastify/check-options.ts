import { expected, maxTimerMs } from '../options.ts'
import type { ProxyOptions } from './types.ts'

const callbacks = ['onResult', 'rewriteRequestHeaders', 'rewriteHeaders', 'onError', 'onUnreachable'] as const
const times = ['requestTimeout', 'idleTimeout'] as const
const texts = ['notFoundMessage', 'unavailableMessage', 'refusedMessage'] as const
const flags = ['parseBody', 'claimOnMiss', 'reassignOrphans', 'websocket'] as const

/** Checks what a helper was given, where its route is made. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkProxyOptions (options: ProxyOptions<never>): void {
  if (typeof options !== 'object' || options === null) throw expected('options', 'an object', options)
  const given = options as Readonly<Record<string, unknown>>
  for (const name of callbacks) check(given, name, value => typeof value === 'function', 'a function')
  for (const name of texts) check(given, name, value => typeof value === 'string', 'a string')
  for (const name of flags) check(given, name, value => typeof value === 'boolean', 'a boolean')
  for (const name of times) check(given, name, isTime, `a number of milliseconds > 0 and at most ${maxTimerMs}`)
  check(given, 'noPodStatus', isErrorStatus, 'an integer from 400 to 599')
  check(given, 'ifBound', value => value === 'add' || value === 'refuse', "'add' or 'refuse'")
  check(given, 'replyLimit', value => Number.isInteger(value) && (value as number) > 0, 'an integer > 0')
  check(given, 'expectedStatus', isStatuses, 'a status from 200 to 299, or an array of them')
}

/** Checks that there is a registry; by its methods, since two copies of this package may meet. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkRegistry (registry: unknown): void {
  if (typeof (registry as { resolveDestination?: unknown } | null | undefined)?.resolveDestination !== 'function') throw expected('registry', 'a Registry', registry)
}

/** Checks a callback that a helper cannot do without. @throws PLT_COORDINATOR_INVALID_OPTION */
export function checkCallback (name: string, value: unknown): void {
  if (typeof value !== 'function') throw expected(name, 'a function', value)
}

/** Tells whether a status is one of those expected. */
export function isExpected (status: number, expectedStatus: number | readonly number[] | undefined, otherwise: (status: number) => boolean): boolean {
  if (expectedStatus === undefined) return otherwise(status)
  return typeof expectedStatus === 'number' ? status === expectedStatus : expectedStatus.includes(status)
}

function check (options: Readonly<Record<string, unknown>>, name: string, isRight: (value: unknown) => boolean, rule: string): void {
  const value = options[name]
  if (value !== undefined && !isRight(value)) throw expected(name, rule, value)
}

function isTime (value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value <= maxTimerMs
}

function isErrorStatus (value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 400 && (value as number) <= 599
}

function isStatuses (value: unknown): boolean {
  const statuses = Array.isArray(value) ? value : [value]
  return statuses.length > 0 && statuses.every(status => Number.isInteger(status) && status >= 200 && status <= 299)
}
