/**
 * Builds the package: declarations file by file, the code in one file with a source map. A pod that imports the package waits for the
 * loading of each module, and there are more than 40.
 *
 * Arguments: [--out <folder>] (dist), [--quiet]
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const { values: { out = 'dist', quiet = false } } = parseArgs({ options: { out: { type: 'string' }, quiet: { type: 'boolean' } } })
const folder = resolve(root, out)

rmSync(folder, { recursive: true, force: true })
const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', folder], { cwd: root, stdio: 'inherit' })
if (status === 0) {
  await build({
    absWorkingDir: root,
    entryPoints: ['src/index.ts'],
    outfile: join(folder, 'index.js'),
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    logLevel: 'warning'
  })
  if (!quiet) console.log(`built ${out}/`)
}
process.exitCode = status ?? 1
