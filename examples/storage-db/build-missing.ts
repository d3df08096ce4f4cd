// Compiles what is missing, or older than its source: the library, and this example against it.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const example = fileURLToPath(new URL('.', import.meta.url))
const root = join(example, '..', '..')

export function buildMissing (): void {
  // The library only when it is missing: whoever works on it builds it when it is fit to be built.
  if (!existsSync(join(root, 'dist', 'index.js'))) run(['run', 'build'])
  const output = join(example, 'dist', 'pod.js')
  const compiledAt = existsSync(output) ? statSync(output).mtimeMs : 0
  const changedAt = Math.max(...readdirSync(join(example, 'src')).map(file => statSync(join(example, 'src', file)).mtimeMs))
  if (compiledAt < changedAt) run(['run', 'build', '-w', 'storage-db-example'])
}

function run (args: string[]): void {
  // What it prints goes to stderr: stdout is for what was asked for.
  const { status, error } = spawnSync('npm', args, { cwd: root, stdio: ['ignore', process.stderr, 'inherit'] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed with ${error?.message ?? `exit code ${status}`}`)
}
