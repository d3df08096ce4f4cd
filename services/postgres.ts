import { openComposeService } from './compose-service.ts'
import { findInstallObstacle, installPackage, installScript } from './installation.ts'
import { findPostgresFolder } from './postgres-binaries.ts'
import { buildPostgresUrl, findConnectObstacle } from './postgres-client.ts'
import { PrivatePostgres } from './private-postgres.ts'
import { NoServiceError } from './service.ts'
import type { Service } from './service.ts'

const developmentPort = 15432
const developmentUrl = buildPostgresUrl(developmentPort)
const choices = ['local', 'compose'] as const

/** What `COORDINATOR_POSTGRES` may name: the one way to get a PostgreSQL, instead of the first that works. */
export type PostgresChoice = typeof choices[number]

/** What the environment decides, for usage texts. */
export const postgresHelp = `The PostgreSQL is, in this order:
  1. PG_URL, when it is set
  2. a server that answers on 127.0.0.1:${developmentPort} with database, user and password storage (npm run test:deps:up starts one with Docker)
  3. postgres and initdb from the PATH, else the newest from where packages put them: started privately and stopped at the end
  4. Docker Compose, where an engine answers: brought up and down again
  5. as root on Debian or Ubuntu: installed with apt-get, then as 3
COORDINATOR_POSTGRES=${choices.join('|')} skips this order and takes the one that it names
(what local misses is installed under the rule of 5). COORDINATOR_POSTGRES_BIN names the one folder to look for postgres and initdb in.`

/**
 * Finds or starts a PostgreSQL, see `postgresHelp`. Throws a NoServiceError when none is to be had.
 */
export async function openPostgres (env: NodeJS.ProcessEnv = process.env): Promise<Service> {
  const choice = readChoice(env)
  if (choice === 'compose') {
    return await openComposed() ?? refuse('COORDINATOR_POSTGRES=compose, but no Docker engine with Compose answers.')
  }
  if (choice === 'local') return await startLocal(env) ?? await installAndStart(env)

  if (env['PG_URL']) return openGiven(env['PG_URL'])
  if (await findConnectObstacle(developmentUrl) === undefined) {
    return { url: developmentUrl, origin: 'already running', stop: async () => {} }
  }
  return await startLocal(env) ?? await openComposed() ?? await installAndStart(env)
}

async function openGiven (url: string): Promise<Service> {
  // Checked before `pg` reads it, which takes any text for a URL of some kind.
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw new NoServiceError('PG_URL is not a URL of PostgreSQL. Expected postgresql://user:password@host:port/database')
  }
  const obstacle = await findConnectObstacle(url)
  if (obstacle) throw new NoServiceError(`PG_URL is set, but there is no connection to it: ${obstacle}. Start it, or unset PG_URL.`)
  return { url, origin: 'from PG_URL', stop: async () => {} }
}

async function startLocal (env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const folder = findPostgresFolder(env)
  if (folder === undefined) return undefined
  const postgres = await PrivatePostgres.create(folder)
  const stop = async (): Promise<void> => postgres.close()
  try {
    await postgres.start()
  } catch (error) {
    await stop()
    throw error
  }
  return { url: postgres.url, origin: `private PostgreSQL ${postgres.version}`, stop }
}

async function openComposed (): Promise<Service | undefined> {
  return openComposeService({
    name: 'postgres',
    url: developmentUrl,
    answers: async (deadlineMs) => await findConnectObstacle(developmentUrl, deadlineMs) === undefined
  })
}

async function installAndStart (env: NodeJS.ProcessEnv): Promise<Service> {
  const obstacle = env['COORDINATOR_POSTGRES_BIN'] ? 'COORDINATOR_POSTGRES_BIN names another place' : findInstallObstacle(env)
  if (obstacle) refuse(`No postgres and initdb here, and they cannot be installed: ${obstacle}.`)

  console.error(`postgres: no postgres and initdb here; as root on a Debian system, installing them with apt-get (${installScript})`)
  const code = await installPackage('postgresql')
  if (code !== 0) refuse(`Installing postgresql with apt-get failed with exit code ${code}.`)
  return await startLocal(env) ?? refuse('postgresql was installed, but there is no folder with postgres and initdb.')
}

function readChoice (env: NodeJS.ProcessEnv): PostgresChoice | undefined {
  const value = env['COORDINATOR_POSTGRES']
  if (!value) return undefined
  const choice = choices.find((candidate) => candidate === value)
  return choice ?? refuse(`Expected COORDINATOR_POSTGRES to be one of ${choices.join(', ')}, got ${value}.`)
}

function refuse (reason: string): never {
  throw new NoServiceError(`${reason}
Choose one:
  - install PostgreSQL, so that postgres and initdb are on the PATH, or name their folder by COORDINATOR_POSTGRES_BIN
  - start a Docker engine; Docker Compose is then used by itself
  - start a server on 127.0.0.1:${developmentPort} with database, user and password storage
  - set PG_URL to a database of yours, as in PG_URL=postgresql://user:password@127.0.0.1:5432/database
  - run as root on Debian or Ubuntu: PostgreSQL is then installed with apt-get`)
}
