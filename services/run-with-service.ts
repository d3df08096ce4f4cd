import { endWithLauncher } from './launcher.ts'
import { endSignals, runCommand, signalExitCode } from './run-command.ts'
import { NoServiceError } from './service.ts'
import type { Service } from './service.ts'

/** What a script that runs a command with a service has of its own. */
export interface ServiceScript {
  /** The script's path, for its usage text. */
  readonly file: string
  /** What messages about the service begin with. */
  readonly label: string
  /** The environment variable by which the command gets the URL. */
  readonly variable: string
  /** What `variable` is set to, for the usage text. */
  readonly target: string
  /** Says how the service is found, for the usage text. */
  readonly help: string
  /** Finds or starts the service. Throws a NoServiceError when none is to be had. */
  open (): Promise<Service>
}

/**
 * Does what a script's arguments (`-- <command> [argument…]`) ask for: runs the command with a service and sets the exit code of
 * this process.
 */
export async function runWithService (script: ServiceScript): Promise<void> {
  /** The first signal received: while the service is being started no command is there to pass it on to. */
  let received: NodeJS.Signals | undefined
  for (const signal of endSignals) {
    process.on(signal, () => { received ??= signal })
  }
  endWithLauncher()

  const [separator, command, ...args] = process.argv.slice(2)
  if (separator !== '--' || command === undefined) {
    console.error(describe(script))
    process.exitCode = separator === '--help' ? 0 : 2
    return
  }
  process.exitCode = await run(script, command, args, () => received)
}

async function run (script: ServiceScript, command: string, args: readonly string[], getReceived: () => NodeJS.Signals | undefined): Promise<number> {
  const { label, variable } = script
  let service
  try {
    service = await script.open()
  } catch (error) {
    const received = getReceived()
    if (received) return signalExitCode(received)
    console.error(error instanceof NoServiceError ? `${label}: ${error.message}` : error)
    return 1
  }
  try {
    const received = getReceived()
    if (received) return signalExitCode(received)
    console.error(`${label}: ${hideSecrets(service.url)} (${service.origin})`)
    return await runCommand(command, args, { env: { ...process.env, [variable]: service.url } })
  } finally {
    await service.stop()
  }
}

/** Drops user and password, and the query, in which PostgreSQL takes a password too. */
function hideSecrets (url: string): string {
  return url.replace(/\/\/.*@/, '//').replace(/\?.*$/, '')
}

function describe ({ file, variable, target, help }: ServiceScript): string {
  return `Usage: node --import tsx ${file} -- <command> [argument…]

Runs the command with ${variable} set to ${target}, and exits with its exit code (128 + signal when a signal ended it).
${help}`
}
