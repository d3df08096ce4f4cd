// The demo: pods that own destinations, coordinators that send HTTP requests to them, one pod that is killed and one that leaves.
// Read pod.ts and coordinator.ts to see the library at work, story.ts for what happens when.

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Screen } from './screen.ts'
import { redis } from './settings.ts'
import { Story } from './story.ts'
import { describe } from './summary.ts'

const usage = `Usage: npm run demo [-- options]

  --json      print the summary alone, as JSON
  --sabotage  send one request to the wrong pod, to see that the verdict notices: exit code 1
  --help      print this text
`

const options = readOptions()
if (options === null) {
  process.exitCode = 2
} else if (options.help) {
  process.stdout.write(usage)
} else {
  process.exitCode = await run(options.json, options.sabotage)
}

function readOptions () {
  const flag = { type: 'boolean', default: false } as const
  try {
    // pnpm passes on the -- before the options, npm does not.
    return parseArgs({ args: process.argv.slice(2).filter(arg => arg !== '--'), options: { json: flag, sabotage: flag, help: flag } }).values
  } catch (error) {
    process.stderr.write(`${text(error)}\n\n${usage}`)
    return null
  }
}

/** Resolves to the exit code. */
async function run (isJson: boolean, sabotage: boolean): Promise<number> {
  const stop = new AbortController()
  let signalNumber = 0
  for (const [name, number] of [['SIGHUP', 1], ['SIGINT', 2], ['SIGTERM', 15]] as const) {
    // Not once: for one Ctrl-C the terminal, npm and a parent may all send the signal.
    process.on(name, () => {
      signalNumber = number
      stop.abort()
    })
  }
  process.stdout.on('error', error => stop.abort(error)) // the reader has gone, as in `| head`

  const screen = isJson ? null : new Screen(process.stdout)
  const keyPrefix = `coordinator-demo-${randomBytes(4).toString('hex')}`
  const story = new Story({ keyPrefix, screen, sabotage, stop })
  try {
    const summary = await story.play()
    screen?.close()
    await story.cleanUp()
    process.stdout.write(isJson ? `${JSON.stringify(summary, null, 2)}\n` : `${describe(summary).join('\n')}\n`)
    return summary.ok ? 0 : 1
  } catch (error) {
    screen?.close()
    await story.cleanUp().catch(() => {}) // the store may have gone, and the keys with it
    if (signalNumber > 0) return 128 + signalNumber
    process.stderr.write(`The demo failed with the store at ${withoutPassword(redis)}: ${text(stop.signal.reason ?? error)}\n`)
    return 1
  }
}

function text (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function withoutPassword (url: string): string {
  return url.replace(/\/\/.*@/, '//')
}
