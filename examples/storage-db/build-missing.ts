// Compiles what is missing, or older than its source: the library, and this example against it.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const example = fileURLToPath(new URL('.', import.meta.url))
const root = join(example, '..', '..')

export function buildMissing (): void {
  const library = listFiles(join(root, 'src'))
  if (isOlder(listOutputs(root, library), library)) run(['run', 'build'])
  const sources = listFiles(join(example, 'src'))
  if (isOlder(listOutputs(example, sources), [...sources, join(root, 'dist', 'index.js')])) run(['run', 'build', '-w', 'storage-db-example'])
}

/** Whether one of the outputs is missing, as after a compiler that was broken off, or older than one of the sources. */
function isOlder (outputs: readonly string[], sources: readonly string[]): boolean {
  if (!outputs.every(file => existsSync(file))) return true
  return Math.min(...outputs.map(changedAt)) < Math.max(...sources.map(changedAt))
}

function listOutputs (folder: string, sources: readonly string[]): string[] {
  return sources.map(file => file.replace(join(folder, 'src'), join(folder, 'dist')).replace(/\.ts$/, '.js'))
}

function listFiles (folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.ts')).map(file => join(folder, file))
}

function changedAt (file: string): number {
  return statSync(file).mtimeMs
}

function run (args: string[]): void {
  // What it prints goes to stderr: stdout is for what was asked for.
  const { status, error } = spawnSync('npm', args, { cwd: root, stdio: ['ignore', process.stderr, 'inherit'] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed with ${error?.message ?? `exit code ${status}`}`)
}
