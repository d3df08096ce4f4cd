// `npm run example:storage-db`: three pods and a coordinator as processes of this machine, with Valkey and PostgreSQL from REDIS_URL and PG_URL.
// They stay until Ctrl-C; with --smoke everything is tried once instead. See README.md.

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { buildMissing } from './build-missing.ts'
import { removeLeftovers } from './remove-leftovers.ts'
import { runSmoke } from './smoke.ts'
import { Stack } from './stack.ts'

const usage = `Usage: npm run example:storage-db [-- options]

  --smoke      try every route and every promise, print a summary; exit code 1 when one was broken
  --url <url>  with --smoke: try the coordinator at this URL, started elsewhere (Compose); what needs its processes is left out
  --help       print this text
`

const memberIds = ['pod-1', 'pod-2', 'pod-3']

/** Short times, so that what takes its time by design is over before one looks away. */
const settings = { CACHE_TTL: 1000, TTL: 2, HEARTBEAT: 500, POOL_MAX: 4, FAN_OUT_WAIT: 100, FAN_IN_CALM: 3000, DRAIN_TIMEOUT: 3000, LOG_LEVEL: 'error' }
/** A longer TTL, so that a busy machine alone ends no record: nothing but the check that kills a pod waits for it. */
const smokeSettings = { TTL: 5, TRANSACTION_IDLE: 2000, FAN_IN_CALM: 2000 }

const options = readOptions()
if (options === null) {
  process.exitCode = 2
} else if (options.help) {
  process.stdout.write(usage)
} else if (options.url !== undefined) {
  process.exitCode = await runSmoke(options.url, null) ? 0 : 1
} else {
  process.exitCode = await run(options.smoke)
}

function readOptions () {
  try {
    // pnpm passes on the -- before the options, npm does not.
    const args = process.argv.slice(2).filter(arg => arg !== '--')
    const { values } = parseArgs({ args, options: { smoke: { type: 'boolean', default: false }, url: { type: 'string' }, help: { type: 'boolean', default: false } } })
    if (values.url !== undefined && !(values.smoke && URL.canParse(values.url))) throw new Error('Expected --url to be a URL, beside --smoke')
    return values
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`)
    return null
  }
}

/** Resolves to the exit code. */
async function run (isSmoke: boolean): Promise<number> {
  const { REDIS_URL: redisUrl, PG_URL: pgUrl } = process.env
  if (!redisUrl || !pgUrl) {
    process.stderr.write('Expected REDIS_URL and PG_URL to be set: npm run example:storage-db does so\n')
    return 2
  }
  let signalNumber = 0
  const asked = new Promise<void>(resolve => {
    for (const [name, number] of [['SIGHUP', 1], ['SIGINT', 2], ['SIGTERM', 15]] as const) {
      // Not once: for one Ctrl-C the terminal, npm and a parent may all send the signal.
      process.on(name, () => {
        signalNumber = number
        resolve()
      })
    }
  })

  const name = randomBytes(4).toString('hex')
  const [keyPrefix, schemaPrefix] = [`storage-db-${name}`, `storage_${name}`]
  const stack = new Stack({ ...settings, ...(isSmoke ? smokeSettings : { TRANSACTION_IDLE: 60_000, TRANSACTION_LIFE: 600_000 }), KEY_PREFIX: keyPrefix, SCHEMA_PREFIX: schemaPrefix })
  try {
    buildMissing()
    await stack.start(memberIds)
    if (!isSmoke) {
      process.stdout.write(describeCommands(stack.url))
      await asked
      return 0
    }
    const isGood = await Promise.race([runSmoke(stack.url, stack), asked])
    return isGood === undefined ? 128 + signalNumber : isGood ? 0 : 1
  } catch (error) {
    if (signalNumber > 0) return 128 + signalNumber
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
    return 1
  } finally {
    await stack.stop()
    await removeLeftovers(redisUrl, keyPrefix, pgUrl, schemaPrefix)
      .catch(error => process.stderr.write(`Some of what this run wrote is left: ${error instanceof Error ? error.message : error}\n`))
  }
}

function describeCommands (url: string): string {
  const json = "-H 'content-type: application/json'"
  return `
Three pods and a coordinator are up. Try:

  curl -X POST ${url}/tenants/acme
  curl -X PUT ${url}/tenants/acme/keys/colour ${json} -d '{"value":"green"}'
  curl -i ${url}/tenants/acme/keys/colour
  curl ${url}/tenants/acme/keys
  curl ${url}/pods

  curl -X POST ${url}/tenants/acme/transactions
  curl -X PUT ${url}/transactions/LOCK-ID/keys/colour ${json} -d '{"value":"blue"}'
  curl ${url}/tenants/acme/keys/colour            # still green
  curl -X POST ${url}/transactions/LOCK-ID/commit

  curl -X DELETE ${url}/tenants/acme

Ctrl-C ends them, and removes all that was stored.
`
}
