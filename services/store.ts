import { openComposeService } from './compose-service.ts'
import { findInstallObstacle, findOnPath, installPackage, installScript } from './installation.ts'
import { startPrivateStore } from './private-store.ts'
import { acceptsConnections, askStore } from './resp.ts'
import { NoServiceError } from './service.ts'
import type { Service } from './service.ts'

const developmentPort = 6390
const binaries = ['valkey-server', 'redis-server'] as const
const choices = [...binaries, 'compose'] as const

type Binary = typeof binaries[number]

/** What `COORDINATOR_STORE` may name: the one way to get a store, instead of the first that works. */
export type StoreChoice = typeof choices[number]

/** What the environment decides, for usage texts. */
export const storeHelp = `The store is, in this order:
  1. REDIS_URL, when it is set
  2. a server that answers on 127.0.0.1:${developmentPort} (npm run test:deps:up starts one with Docker)
  3. valkey-server, else redis-server, from the PATH: started privately and stopped at the end
  4. Docker Compose, where an engine answers: brought up and down again
  5. as root on Debian or Ubuntu: valkey-server, else redis-server, installed with apt-get, then as 3
COORDINATOR_STORE=${choices.join('|')} skips this order and takes the one that it names
(a missing binary is installed under the rule of 5).`

/**
 * Finds or starts a store, see `storeHelp`. Throws a NoServiceError when none is to be had.
 */
export async function openStore (env: NodeJS.ProcessEnv = process.env): Promise<Service> {
  const choice = readChoice(env)
  if (choice === 'compose') {
    return await openComposeStore() ?? refuse('COORDINATOR_STORE=compose, but no Docker engine with Compose answers.')
  }
  if (choice !== undefined) return openBinaryStore([choice], choice, env)

  if (env['REDIS_URL']) return openGivenStore(env['REDIS_URL'])
  if (await askStore({ host: '127.0.0.1', port: developmentPort }, 'PING') === 'PONG') {
    return { url: `redis://127.0.0.1:${developmentPort}`, origin: 'already running', stop: async () => {} }
  }
  return await startFromPath(binaries, env) ?? await openComposeStore() ?? await openBinaryStore(binaries, 'any', env)
}

async function openGivenStore (url: string): Promise<Service> {
  if (!URL.canParse(url)) throw new NoServiceError('REDIS_URL is not a URL. Expected redis://host:port')
  const { hostname, port } = new URL(url)
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
  if (!await acceptsConnections(address)) {
    throw new NoServiceError(`REDIS_URL is set, but nothing answers at ${hostname}:${address.port}. Start it, or unset REDIS_URL.`)
  }
  return { url, origin: 'from REDIS_URL', stop: async () => {} }
}

async function openBinaryStore (wanted: readonly Binary[], packageName: Binary | 'any', env: NodeJS.ProcessEnv): Promise<Service> {
  const found = await startFromPath(wanted, env)
  if (found) return found
  const obstacle = findInstallObstacle(env)
  if (obstacle) refuse(`No ${wanted.join(' or ')} on the PATH, and it cannot be installed here: ${obstacle}.`)

  console.error(`store: no ${wanted.join(' or ')} here; as root on a Debian system, installing it with apt-get (${installScript})`)
  const code = await installPackage(packageName)
  if (code !== 0) refuse(`Installing ${wanted.join(' or ')} with apt-get failed with exit code ${code}.`)
  return await startFromPath(wanted, env) ?? refuse(`${wanted.join(' or ')} was installed but is not on the PATH.`)
}

async function openComposeStore (): Promise<Service | undefined> {
  return openComposeService({
    name: 'valkey',
    url: `redis://127.0.0.1:${developmentPort}`,
    answers: async (deadlineMs) => await askStore({ host: '127.0.0.1', port: developmentPort }, 'PING', deadlineMs) === 'PONG'
  })
}

async function startFromPath (wanted: readonly Binary[], env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  for (const name of wanted) {
    const file = findOnPath(name, env)
    if (file === undefined) continue
    const { url, stop } = await startPrivateStore(file)
    return { url, origin: `private ${name}`, stop }
  }
  return undefined
}

function readChoice (env: NodeJS.ProcessEnv): StoreChoice | undefined {
  const value = env['COORDINATOR_STORE']
  if (!value) return undefined
  const choice = choices.find((candidate) => candidate === value)
  return choice ?? refuse(`Expected COORDINATOR_STORE to be one of ${choices.join(', ')}, got ${value}.`)
}

function refuse (reason: string): never {
  throw new NoServiceError(`${reason}
Choose one:
  - install Valkey (or Redis), so that valkey-server (or redis-server) is on the PATH
  - start a Docker engine; Docker Compose is then used by itself
  - start a server on 127.0.0.1:${developmentPort}
  - set REDIS_URL to a server of yours, as in REDIS_URL=redis://127.0.0.1:6379
  - run as root on Debian or Ubuntu: valkey-server is then installed with apt-get`)
}
