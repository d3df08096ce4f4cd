import { channel } from 'node:diagnostics_channel'
import type { Channel } from 'node:diagnostics_channel'
import type { CoordinatorError } from './errors.ts'

/** Payload of each diagnostics channel, by the event's name; the channel is `@platformatic/coordinator:<event>`. */
export interface DiagnosticsEvents {
  /** Something failed that no caller is told of. */
  error: { keyPrefix: string, error: CoordinatorError }
  /** A heartbeat was answered. `restored`: the record had expired. */
  heartbeat: { keyPrefix: string, memberId: string, status: 'beat' | 'restored' | 'superseded' }
  /** A later process of the same memberId was found: this one stops writing. */
  superseded: { keyPrefix: string, memberId: string, incarnation: string }
  /** The prefix is in use with another value of a feature. */
  features: { keyPrefix: string, feature: string, recorded: string, own: string }
  /** Dead pods were removed beside live ones, from a destination's set or (no destinationId) from the set of members. */
  prune: { keyPrefix: string, destinationId?: string, count: number }
  /** A destination's set holds more pods than a script can read within a millisecond. */
  oversized: { keyPrefix: string, destinationId: string, count: number }
}

/** Names of the events. */
export type DiagnosticsEvent = keyof DiagnosticsEvents

/** Names of the channels, to hand to `node:diagnostics_channel`. */
export const diagnosticsChannels: { readonly [E in DiagnosticsEvent]: string } = {
  error: '@platformatic/coordinator:error',
  heartbeat: '@platformatic/coordinator:heartbeat',
  superseded: '@platformatic/coordinator:superseded',
  features: '@platformatic/coordinator:features',
  prune: '@platformatic/coordinator:prune',
  oversized: '@platformatic/coordinator:oversized'
}

const channels = new Map<DiagnosticsEvent, Channel>(
  (Object.keys(diagnosticsChannels) as DiagnosticsEvent[]).map(event => [event, channel(diagnosticsChannels[event])])
)

/** Publishes an event; free of cost when nobody subscribed. */
export function publish<E extends DiagnosticsEvent> (event: E, payload: DiagnosticsEvents[E]): void {
  const target = channels.get(event)
  if (target?.hasSubscribers) target.publish(payload)
}
