// The demo: pods that own destinations, callers that find them, one pod that is killed and one that leaves.
// Read pod.ts and caller.ts to see the library at work, story.ts for what happens when.

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Screen } from './screen.ts'
import { Story } from './story.ts'
import { describe } from './summary.ts'

const usage = `Usage: npm run demo [-- options]

  --json      print the summary alone, as JSON
  --sabotage  send one request to the wrong pod, to see that the verdict notices: exit code 1
  --help      print this text
`

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    sabotage: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  }
})

if (options.help) {
  process.stdout.write(usage)
} else {
  await run()
}

async function run (): Promise<void> {
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

  const screen = options.json ? null : new Screen(process.stdout)
  const keyPrefix = `coordinator-demo-${randomBytes(4).toString('hex')}`
  const story = new Story({ keyPrefix, screen, stop, sabotage: options.sabotage })
  try {
    const summary = await story.play()
    screen?.close()
    process.stdout.write(options.json ? `${JSON.stringify(summary, null, 2)}\n` : `${describe(summary).join('\n')}\n`)
    process.exitCode = summary.ok ? 0 : 1
  } catch (error) {
    screen?.close()
    if (signalNumber === 0) process.stderr.write(`The demo failed: ${text(stop.signal.reason ?? error)}\n`)
    process.exitCode = signalNumber === 0 ? 1 : 128 + signalNumber
  } finally {
    await story.cleanUp().catch(error => {
      // After Ctrl-C the store may have been stopped before us, and the keys with it.
      if (signalNumber === 0) process.stderr.write(`The keys ${keyPrefix}:* could not be removed: ${text(error)}\n`)
      process.exitCode ||= 1
    })
  }
}

function text (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
