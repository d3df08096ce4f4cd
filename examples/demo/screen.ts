import { stripVTControlCharacters } from 'node:util'
import type { WriteStream } from 'node:tty'

export interface PodRow {
  memberId: string
  /** What the parent knows of the process. */
  state: 'running' | 'killed' | 'draining' | 'left'
  /** What the store says of the pod. */
  record: 'live' | 'draining' | 'none'
  load: number | null
  destinations: number
  requests: number
}

export interface Frame {
  pods: PodRow[]
  destinations: number
  sent: number
  failed: number
}

type Output = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>

const colorOf = { running: 32, live: 32, draining: 33, killed: 31, none: 2, left: 2 }

/** On a terminal a table that is redrawn in place below the log; elsewhere one plain line a second. */
export class Screen {
  readonly #output: Output
  readonly #isLive: boolean
  readonly #hasColor: boolean
  readonly #block: string
  readonly #startedAt = performance.now()
  #isClosed = false
  #drawnLineCount = 0
  #nextPlainAt = 0

  constructor (output: Output, env: NodeJS.ProcessEnv = process.env) {
    this.#output = output
    this.#isLive = output.isTTY === true && env.TERM !== 'dumb'
    this.#hasColor = this.#isLive && !env.NO_COLOR
    this.#block = /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || '') ? '\u2588' : '#'
    if (this.#isLive) output.write('\x1b[?25l')
  }

  /** Writes lines that stay. */
  log (...lines: string[]): void {
    this.#write(lines, false)
  }

  /** Writes a line that begins with the time and a phase in bold. */
  logPhase (phase: string, text: string): void {
    this.log(`${this.#elapsed()}  ${this.#paint(1, phase.padEnd(6))}  ${text}`)
  }

  draw (frame: Frame): void {
    if (this.#isClosed) return
    if (this.#isLive) return this.#write(this.#table(frame), true)
    if (performance.now() < this.#nextPlainAt) return
    this.#nextPlainAt = performance.now() + 1_000
    const pods = frame.pods.map(pod => `${pod.memberId} ${pod.state} ${pod.destinations}`)
    this.log(`${this.#elapsed()}          ${pods.join(' | ')} | ${frame.sent} sent, ${frame.failed} failed`)
  }

  /** Leaves the last table where it is and gives the cursor back. */
  close (): void {
    this.#isClosed = true
    this.#drawnLineCount = 0
    if (this.#isLive) this.#output.write('\x1b[?25h')
  }

  #table ({ pods, destinations, sent, failed }: Frame): string[] {
    const spare = (this.#output.columns ?? 80) - 62
    const barWidth = Math.max(0, Math.min(30, spare))
    const rows = pods.map(pod => [
      `  ${this.#paint(colorOf[pod.state], pod.memberId.padEnd(6))}`,
      ...(spare < 0 ? [] : [this.#paint(colorOf[pod.state], pod.state.padEnd(8)), this.#paint(colorOf[pod.record], pod.record.padEnd(8))]),
      String(pod.load ?? '-').padStart(4),
      String(pod.destinations).padStart(12),
      String(pod.requests).padStart(8),
      this.#paint(36, this.#block.repeat(Math.round(pod.destinations / destinations * barWidth)))
    ].join('  '))
    const head = `  pod     ${spare < 0 ? '' : 'process   record    '}load  destinations  requests`
    return ['', this.#paint(2, head), ...rows, '', `  ${sent} sent, ${failed} failed`]
  }

  #write (lines: string[], isFrame: boolean): void {
    const erase = this.#drawnLineCount > 0 ? `\x1b[${this.#drawnLineCount}A\x1b[J` : ''
    this.#output.write(erase + lines.map(line => `${isFrame ? this.#fit(line) : line}\n`).join(''))
    this.#drawnLineCount = isFrame ? lines.length : 0
  }

  // A line that wrapped would take two rows of the terminal, and the table would creep down with every redraw.
  #fit (line: string): string {
    const width = (this.#isLive && this.#output.columns) || Infinity
    const plain = stripVTControlCharacters(line)
    return plain.length < width ? line : plain.slice(0, width - 1)
  }

  #paint (code: number, text: string): string {
    return this.#hasColor ? `\x1b[${code}m${text}\x1b[0m` : text
  }

  #elapsed (): string {
    return `${((performance.now() - this.#startedAt) / 1_000).toFixed(1).padStart(5)} s`
  }
}
