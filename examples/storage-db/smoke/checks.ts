// Runs checks one after another, prints a line for each, and counts.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stack } from '../stack.ts'
import { Api } from './api.ts'

export class Smoke {
  readonly api: Api
  /** Null: the processes are somebody else's. */
  readonly stack: Stack | null
  readonly #run = randomBytes(3).toString('hex')
  readonly #tenantIds = new Set<string>()
  passed = 0
  readonly failed: string[] = []
  readonly skipped: string[] = []

  constructor (url: string, stack: Stack | null) {
    this.api = new Api(url)
    this.stack = stack
  }

  /** A tenant id of this run alone, removed at its end. */
  name (tenantId: string): string {
    const name = `${tenantId}-${this.#run}`
    this.#tenantIds.add(name)
    return name
  }

  /** Runs a check, which throws when it does not hold; it may return a remark. */
  async check (claim: string, test: () => Promise<unknown>): Promise<void> {
    const startedAt = Date.now()
    try {
      const remark = await test()
      this.passed++
      print(`  ok    ${claim}${typeof remark === 'string' ? ` (${remark})` : ''}, ${Date.now() - startedAt} ms`)
    } catch (error) {
      this.failed.push(claim)
      print(`  FAIL  ${claim}: ${error instanceof Error ? error.message : error}`)
    }
  }

  skip (claim: string, reason: string): void {
    this.skipped.push(claim)
    print(`  skip  ${claim}: ${reason}`)
  }

  async cleanUp (): Promise<void> {
    for (const tenantId of this.#tenantIds) await this.api.drop(tenantId).catch(() => {})
    this.api.close()
  }
}

/** Waits until the condition gives something other than undefined or false. */
export async function until<T> (what: string, condition: () => Promise<T | undefined | false>, timeout = 20_000): Promise<T> {
  const deadline = Date.now() + timeout
  for (;;) {
    const result = await condition()
    if (result !== undefined && result !== false) return result
    if (Date.now() > deadline) throw new Error(`${what} did not come within ${timeout} ms`)
    await sleep(50)
  }
}

export function print (line: string): void {
  process.stdout.write(`${line}\n`)
}
