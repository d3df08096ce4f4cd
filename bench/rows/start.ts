import { execFile, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Bench, RowGroup } from '../bench.ts'
import type { Side } from '../compare.ts'

interface Imported {
  readonly ms: number
  readonly cpuUs: number
  /** Modules of undici, reply-from and Fastify. */
  readonly loaded: number
}

type What = 'client' | 'member' | 'plugin'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const probe = fileURLToPath(new URL('../processes/import-probe.mjs', import.meta.url))

/** What it takes a pod to load the package: as built, each time in a new process without a loader. */
export const start: RowGroup = {
  name: 'start',
  async run (bench) {
    const packageUrl = build(bench)
    const importOnce = async (what: What): Promise<Imported> => {
      const { stdout } = await run(process.execPath, [probe, what, packageUrl])
      return JSON.parse(stdout) as Imported
    }
    await bench.compare({
      meter: bench.createMeter(),
      control: 'member',
      operations: 1,
      sides: {
        member: toSide('import { Member }', () => importOnce('member')),
        client: toSide('import(\'iovalkey\')', () => importOnce('client'))
      },
      pairs: [{ id: 'start/member', measured: 'member', limit: 'client', figure: 'client cpu' }]
    })
    if (!bench.wants('start/http-modules')) return
    const { loaded: withPlugin } = await importOnce('plugin')
    if (withPlugin === 0) throw new Error('The bench is wrong: it does not see the modules that the plugin loads')
    bench.report('start/http-modules', 'modules of the HTTP side', [(await importOnce('member')).loaded], `with the plugin registered: ${withPlugin}`)
  }
}

/** Builds the package beside dist/, which may be another state of the sources or in use. */
function build (bench: Bench): string {
  const out = join(root, 'bench', 'out')
  mkdirSync(out, { recursive: true })
  const folder = mkdtempSync(join(out, 'package-'))
  bench.atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'services/build.ts', '--quiet', '--out', join(folder, 'dist')], { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`The package does not build: ${stdout}${stderr}`)
  cpSync(join(root, 'lua'), join(folder, 'lua'), { recursive: true })
  return pathToFileURL(join(folder, 'dist', 'index.js')).href
}

function toSide (label: string, importOnce: () => Promise<Imported>): Side {
  return {
    label,
    run: async () => {
      const { ms, cpuUs } = await importOnce()
      return { ms, clientUs: cpuUs, latenciesMs: Float64Array.of(ms) }
    }
  }
}
