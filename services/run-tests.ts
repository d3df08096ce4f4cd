import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runCommand } from './run-command.ts'

const usage = `Usage: node --import tsx services/run-tests.ts <folder> [filter…] [--node <path of another node>]

Runs all *.test.ts below the folder, or those whose path contains one of the filters.`

/** Node applies it to each test and, on its own, to each file as a whole: a file's tests together must stay below it. */
const testTimeoutMs = 900_000

// pnpm passes on the -- before the options, npm does not.
const args = process.argv.slice(2).filter((arg) => arg !== '--')
const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { node: { type: 'string' } } })
const [folder, ...filters] = positionals

if (folder === undefined) {
  console.error(usage)
  process.exitCode = 2
} else {
  process.exitCode = await runTests(folder, filters, values.node ?? process.execPath)
}

async function runTests (folder: string, filters: readonly string[], node: string): Promise<number> {
  const found = existsSync(folder) ? listTests(folder) : []
  const files = found.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  if (files.length === 0) {
    console.error(`No *.test.ts below ${folder}${filters.length > 0 ? ` with ${filters.join(' or ')} in its path` : ''}`)
    return 1
  }
  const options = ['--import', 'tsx', '--test', '--test-concurrency=2', `--test-timeout=${testTimeoutMs}`, '--test-reporter=spec']
  // At a SIGHUP node's runner would leave the processes of its files behind.
  return runCommand(node, [...options, ...files], { hangUpSignal: 'SIGTERM' })
}

/** Lists test files in a fixed order. What lies in a folder named `support` serves tests and is none. */
function listTests (folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => a.name < b.name ? -1 : 1)
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ['node_modules', 'support'].includes(entry.name) ? [] : listTests(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}
