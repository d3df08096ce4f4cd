import type { Client, Reply } from './client.ts'
import type { Findings } from './findings.ts'
import type { Landing } from './landing.ts'

/** What one request came to. */
export interface Outcome {
  destinationId: string
  isWrite: boolean
  /** uncertain: a write that may have been carried out or not; failed: it was not, or a read without an answer */
  result: 'ok' | 'uncertain' | 'failed'
  status: Reply['status']
  /** Of the answer's body. */
  code?: string | undefined
  /** The pod that answered, where it says so. */
  memberId?: string | undefined
  sentAt: number
  endedAt: number
}

/** What is written and read one request at a time: a destination, or one key of it. */
export interface Unit {
  readonly destinationId: string
  readonly key: string
}

/** The requests of one kind of pod, and the ledgers that hold their answers against each other. */
export interface Traffic {
  readonly units: readonly Unit[]
  /** What has to be there before the first write. */
  prepare (coordinator: string): Promise<void>
  write (coordinator: string, unit: Unit): Promise<Outcome>
  read (coordinator: string, unit: Unit): Promise<Outcome>
  /** Compares what is stored with what was acknowledged, once all has come to rest. */
  compare (): Promise<void>
  readonly uncertainWrites: number
  /** Units with a write of which nobody knows. */
  readonly uncertain: readonly string[]
}

export interface TrafficOptions {
  client: Client
  findings: Findings
  landing: Landing
  destinationIds: readonly string[]
}

/** A write may have been carried out: there is no answer, or it was cut off between the coordinator and the pod, or it says so. */
export function isUncertain ({ status, body }: Reply): boolean {
  if (status === 'none') return true
  if (typeof status !== 'number' || status < 500) return false
  return status !== 503 || /UNKNOWN/.test(codeOf(body) ?? '')
}

export function codeOf (body: unknown): string | undefined {
  const code = typeof body === 'object' && body !== null ? (body as { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : undefined
}
