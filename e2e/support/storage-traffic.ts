import type { Reply } from './client.ts'
import { ValueLedger } from './value-ledger.ts'
import type { Value } from './value-ledger.ts'
import { codeOf, isUncertain } from './traffic.ts'
import type { Outcome, Traffic, TrafficOptions, Unit } from './traffic.ts'
import { until } from '../../test/support/store.ts'

let lastValue = 0

/** Requests to storage-db: keys of tenants, each value written once. */
export class StorageTraffic implements Traffic {
  readonly units: readonly Unit[]
  readonly values: ValueLedger
  readonly #options: TrafficOptions

  constructor (options: TrafficOptions, keysPerTenant: number) {
    this.#options = options
    this.values = new ValueLedger(options.findings, options.landing)
    this.units = options.destinationIds.flatMap(destinationId => Array.from({ length: keysPerTenant }, (_, i) => ({ destinationId, key: `key-${i + 1}` })))
  }

  /** Creates the tenants. */
  async prepare (coordinator: string): Promise<void> {
    const { client, destinationIds } = this.#options
    await Promise.all(destinationIds.map(async tenantId => {
      let reply: Reply | undefined
      await until(async () => {
        reply = await client.send('POST', `${coordinator}/tenants/${encodeURIComponent(tenantId)}`)
        return reply.status === 201 || reply.status === 200
      }, `the tenant ${tenantId} is created`).catch(error => { throw new Error(`${error.message}: ${JSON.stringify(reply)}`) })
    }))
  }

  async write (coordinator: string, unit: Unit): Promise<Outcome> {
    const value = `v${++lastValue}`
    const attempt = this.values.begin(nameOf(unit), value)
    const reply = await this.#options.client.send('PUT', urlOf(coordinator, unit), { value })
    const result = reply.status === 204 ? 'ok' : isUncertain(reply) ? 'uncertain' : 'failed'
    if (result === 'ok') attempt.acknowledged(reply.sentAt)
    else if (result === 'uncertain') attempt.uncertain(reply.endedAt)
    else attempt.refused()
    return toOutcome(unit, true, result, reply)
  }

  async read (coordinator: string, unit: Unit): Promise<Outcome> {
    const reply = await this.#options.client.send('GET', urlOf(coordinator, unit))
    const value = valueOf(reply)
    if (value !== undefined) this.values.read(nameOf(unit), value)
    return toOutcome(unit, false, value === undefined ? 'failed' : 'ok', reply)
  }

  /** Everything was read back by then; there is nothing beside it to look at. */
  async compare (): Promise<void> {}

  get uncertainWrites (): number {
    return this.values.uncertainWrites
  }

  get uncertain (): readonly string[] {
    return this.values.uncertain
  }
}

function urlOf (coordinator: string, { destinationId, key }: Unit): string {
  return `${coordinator}/tenants/${encodeURIComponent(destinationId)}/keys/${encodeURIComponent(key)}`
}

function nameOf ({ destinationId, key }: Unit): string {
  return `${destinationId}/${key}`
}

/** The value, null when a pod says that there is none; undefined when nobody said. */
function valueOf ({ status, body, headers }: Reply): Value | undefined {
  if (status === 200) return (body as { value: string }).value
  return status === 404 && headers['x-storage-pod'] !== undefined ? null : undefined
}

function toOutcome ({ destinationId }: Unit, isWrite: boolean, result: Outcome['result'], { status, headers, body, sentAt, endedAt }: Reply): Outcome {
  const memberId = headers['x-storage-pod']
  return { destinationId, isWrite, result, status, code: codeOf(body), memberId: typeof memberId === 'string' ? memberId : undefined, sentAt, endedAt }
}
