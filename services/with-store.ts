import { endWithLauncher } from './launcher.ts'
import { endSignals, runCommand, signalExitCode } from './run-command.ts'
import { NoStoreError, openStore, storeHelp } from './store.ts'

const usage = `Usage: node --import tsx services/with-store.ts -- <command> [argument…]

Runs the command with REDIS_URL set to a store, and exits with its exit code (128 + signal when a signal ended it).
${storeHelp}`

/** The first signal received: while the store is being started no command is there to pass it on to. */
let received: NodeJS.Signals | undefined

for (const signal of endSignals) {
  process.on(signal, () => { received ??= signal })
}

endWithLauncher()

const [separator, command, ...args] = process.argv.slice(2)

if (separator === '--' && command !== undefined) {
  process.exitCode = await runWithStore(command, args)
} else {
  console.error(usage)
  process.exitCode = separator === '--help' ? 0 : 2
}

async function runWithStore (command: string, args: readonly string[]): Promise<number> {
  let store
  try {
    store = await openStore()
  } catch (error) {
    if (received) return signalExitCode(received)
    console.error(error instanceof NoStoreError ? `store: ${error.message}` : error)
    return 1
  }
  try {
    if (received) return signalExitCode(received)
    console.error(`store: ${store.url.replace(/\/\/.*@/, '//')} (${store.origin})`)
    return await runCommand(command, args, { env: { ...process.env, REDIS_URL: store.url } })
  } finally {
    await store.stop()
  }
}
