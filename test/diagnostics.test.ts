import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { diagnosticsChannels, publish } from '../src/diagnostics.ts'
import type { DiagnosticsEvent, DiagnosticsEvents } from '../src/diagnostics.ts'
import { CoordinatorError } from '../src/errors.ts'

const keyPrefix = 'p'
const events: DiagnosticsEvents = {
  error: { keyPrefix, error: new CoordinatorError('PLT_COORDINATOR_CLOSED', '') },
  heartbeat: { keyPrefix, memberId: 'm', status: 'beat' },
  superseded: { keyPrefix, memberId: 'm', incarnation: 'i' },
  features: { keyPrefix, feature: 'memberIndex', recorded: '1', own: '0' },
  prune: { keyPrefix, destinationId: 'd', count: 1 },
  oversized: { keyPrefix, destinationId: 'd', count: 51 }
}

test('diagnosticsChannels: names one channel an event, under the package’s name', () => {
  assert.deepEqual(Object.keys(diagnosticsChannels).sort(), Object.keys(events).sort())
  for (const [event, name] of Object.entries(diagnosticsChannels)) assert.equal(name, `@platformatic/coordinator:${event}`)
})

test('publish: hands the very payload to who subscribed to that event, and to nobody else', t => {
  const heard: [string, unknown][] = []
  const listen = (message: unknown, name: string | symbol): void => { heard.push([String(name), message]) }
  for (const name of Object.values(diagnosticsChannels)) subscribe(name, listen)
  t.after(() => { for (const name of Object.values(diagnosticsChannels)) unsubscribe(name, listen) })

  for (const event of Object.keys(events) as DiagnosticsEvent[]) {
    publish(event, events[event])
    assert.equal(heard.length, 1)
    assert.equal(heard[0]?.[0], diagnosticsChannels[event])
    assert.equal(heard[0]?.[1], events[event])
    heard.length = 0
  }
})

test('publish: without a subscriber nothing happens', () => {
  for (const event of Object.keys(events) as DiagnosticsEvent[]) publish(event, events[event])
})
