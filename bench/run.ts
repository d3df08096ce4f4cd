import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { Redis } from 'iovalkey'
import { Bench } from './bench.ts'
import { formatHead, formatResult, listBy, toJson, writeResults } from './report.ts'
import { groups } from './rows/groups.ts'
import { toMarkdown } from './targets.ts'

const usage = `Usage: npm run bench -- [name…] [--smoke] [--check] [--json]

name      a group of rows, or the beginning of a row's id, such as http or http/get; all when none is given
--smoke   runs every row briefly, to see that it runs; nothing is judged
--check   exits 1 when a target is missed, naming it
--json    prints the results as JSON in place of the table
--targets prints the table of bench/README.md

Groups: ${groups.map(({ name }) => name).join(', ')}
The store is found as for the tests; it must have no other clients while this runs. Results are written to bench/out/results.json.`

const flags = new Set(['--smoke', '--check', '--json', '--targets'])
const args = process.argv.slice(2)
const names = args.filter(arg => !arg.startsWith('--'))
const [isSmoke, isCheck, isJson] = ['--smoke', '--check', '--json'].map(flag => args.includes(flag)) as [boolean, boolean, boolean]
const problem = findProblem()

if (problem !== undefined) {
  console.error(`${problem}\n${usage}`)
  process.exitCode = 2
} else if (args.includes('--targets')) {
  console.log(toMarkdown())
} else {
  process.exitCode = await main()
}

function findProblem (): string | undefined {
  const unknown = args.find(arg => arg.startsWith('--') && !flags.has(arg))
  if (unknown !== undefined) return `There is no ${unknown}.`
  const lost = names.find(name => !groups.some(group => name === group.name || name.startsWith(`${group.name}/`)))
  if (lost !== undefined) return `There is no group ${lost}.`
  return isSmoke && isCheck ? '--smoke judges nothing, so --check has nothing to check.' : undefined
}

async function main (): Promise<number> {
  const startedAt = performance.now()
  const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6390'
  const storeVersion = await readStoreVersion(url)
  if (storeVersion === undefined) {
    console.error('No store answers where REDIS_URL says, or on 127.0.0.1:6390. npm run bench finds or starts one.')
    return 1
  }
  const loadBefore = loadavg()[0] ?? NaN
  const print = isJson ? () => {} : (text: string) => console.log(text)
  const bench = new Bench({
    url,
    isSmoke,
    names,
    onResult: result => print(formatResult(result)),
    onNote: text => console.error(`    ${text}`)
  })
  let isEnding = false
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    process.once(signal, () => {
      isEnding = true
      bench.endGroup().finally(() => process.exit(code))
    })
  }

  print(formatHead())
  for (const group of groups) {
    if (!bench.wantsGroup(group.name)) continue
    try {
      await group.run(bench)
    } catch (error) {
      // A signal takes from under a row what it works with; what it has written is being removed.
      if (isEnding) await new Promise(() => {})
      throw error
    } finally {
      await bench.endGroup()
    }
  }
  const { results } = bench
  const json = toJson({ isSmoke, names, storeVersion, loadBefore, seconds: (performance.now() - startedAt) / 1000 }, results)
  const file = writeResults(json)
  if (isJson) console.log(json)
  print(`\n${results.length} rows, written to ${file}`)

  const problems = [...findUnmatched(results), ...(isSmoke ? findStaleReadme() : [])]
  for (const text of problems) console.error(text)
  if (problems.length > 0) return 1
  if (!isCheck) return 0
  const missed = listBy('missed', results)
  for (const text of [...listBy('undecided', results), ...missed]) console.error(text)
  return missed.length > 0 ? 1 : 0
}

/** Names that matched no row: a check of nothing must not pass. */
function findUnmatched (results: readonly { id: string }[]): string[] {
  return names.filter(name => !results.some(({ id }) => id === name || id.startsWith(`${name}/`))).map(name => `No row is named ${name}.`)
}

function findStaleReadme (): string[] {
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  return readme.includes(toMarkdown()) ? [] : ['bench/README.md does not have the table of targets.ts: paste what npm run bench -- --targets prints.']
}

/** The kind of store and its version; undefined when none answers. */
async function readStoreVersion (url: string): Promise<string | undefined> {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
  client.on('error', () => {}) // told by the command that fails
  try {
    const text = await client.info('server')
    const [, kind, version] = /^(valkey)_version:(\S+)/m.exec(text) ?? /^(redis)_version:(\S+)/m.exec(text) ?? []
    return `${kind} ${version}`
  } catch {
    return undefined
  } finally {
    client.disconnect()
  }
}
