import type { Reply } from './client.ts'
import type { Findings } from './findings.ts'
import { NumberLedger } from './number-ledger.ts'
import { OwnerLedger } from './owner-ledger.ts'
import type { NumberTables } from './storage.ts'
import { codeOf, isUncertain } from './traffic.ts'
import type { Outcome, Traffic, TrafficOptions, Unit } from './traffic.ts'

interface Answer {
  memberId: string
  incarnation: string
  number: number
}

/** Requests to stateful pods: each write asks for the next number of its destination. */
export class StatefulTraffic implements Traffic {
  readonly units: readonly Unit[]
  readonly numbers: NumberLedger
  readonly owners: OwnerLedger
  readonly #options: TrafficOptions
  readonly #findings: Findings
  readonly #tables: NumberTables

  constructor (options: TrafficOptions, tables: NumberTables) {
    this.#options = options
    this.#tables = tables
    this.#findings = options.findings
    this.units = options.destinationIds.map(destinationId => ({ destinationId, key: '' }))
    this.numbers = new NumberLedger(options.findings, options.landing)
    this.owners = new OwnerLedger(options.findings)
  }

  async prepare (): Promise<void> {}

  async write (coordinator: string, { destinationId }: Unit): Promise<Outcome> {
    const attempt = this.numbers.begin(destinationId)
    const reply = await this.#options.client.send('POST', `${coordinator}/${encodeURIComponent(destinationId)}`, attempt.writeId)
    const answer = this.#take(destinationId, reply)
    if (answer !== undefined) attempt.acknowledged(answer.number, reply.sentAt)
    else if (isUncertain(reply)) attempt.uncertain(reply.endedAt)
    else attempt.refused()
    return toOutcome(destinationId, true, reply, answer)
  }

  async read (coordinator: string, { destinationId }: Unit): Promise<Outcome> {
    const reply = await this.#options.client.send('GET', `${coordinator}/${encodeURIComponent(destinationId)}`)
    const answer = this.#take(destinationId, reply)
    if (answer !== undefined) this.numbers.read(destinationId, answer.number)
    return toOutcome(destinationId, false, reply, answer)
  }

  async compare (): Promise<void> {
    const { stored, log } = await this.#tables.read()
    this.numbers.compare(stored, log)
    this.owners.judge()
  }

  get uncertainWrites (): number {
    return this.numbers.uncertainWrites
  }

  get uncertain (): readonly string[] {
    return this.numbers.uncertain
  }

  #take (destinationId: string, { status, body, sentAt, endedAt }: Reply): Answer | undefined {
    if (status !== 200) return undefined
    if (!isAnswer(body)) {
      this.#findings.add('malformed', destinationId, JSON.stringify(body).slice(0, 200))
      return undefined
    }
    const { memberId, incarnation } = body
    this.owners.saw(destinationId, { memberId, incarnation, sentAt, endedAt })
    return body
  }
}

function toOutcome (destinationId: string, isWrite: boolean, reply: Reply, answer: Answer | undefined): Outcome {
  const { status, body, sentAt, endedAt } = reply
  const result = answer !== undefined ? 'ok' : isWrite && isUncertain(reply) ? 'uncertain' : 'failed'
  return { destinationId, isWrite, result, status, code: codeOf(body), memberId: answer?.memberId, sentAt, endedAt }
}

function isAnswer (body: unknown): body is Answer {
  const { memberId, incarnation, number } = (typeof body === 'object' && body !== null ? body : {}) as Partial<Answer>
  return typeof memberId === 'string' && typeof incarnation === 'string' && Number.isSafeInteger(number)
}
