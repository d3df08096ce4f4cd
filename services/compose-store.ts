import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runAtEnd } from './private-store.ts'
import { askStore } from './resp.ts'
import { runCommand } from './run-command.ts'

const composeFile = fileURLToPath(new URL('../docker-compose.yml', import.meta.url))
const answerDeadlineMs = 10_000

/** The part of a Store that Docker Compose gives; the caller's Store has the same shape. */
export interface ComposeStore {
  readonly url: string
  readonly origin: string
  stop (): Promise<void>
}

/**
 * Brings up the service `valkey` of docker-compose.yml on the port it publishes and takes it down at the end, but only if it was not
 * up before. Undefined when no engine answers. Throws when the service does not come up.
 */
export async function openComposeStore (port: number): Promise<ComposeStore | undefined> {
  if (docker(['info']) === undefined || docker(['compose', 'version']) === undefined) return undefined
  const running = listRunning()
  const origin = 'Docker Compose'
  const url = `redis://127.0.0.1:${port}`
  if (running.includes('valkey')) return { url, origin: `${origin}, already up`, stop: async () => {} }

  // Others' services of the same file stay up.
  const down = running.length === 0 ? ['down', '--volumes'] : ['rm', '--stop', '--force', '--volumes', 'valkey']
  // Before `up`, so that a half-started service is taken down too.
  const stop = runAtEnd('docker', compose(down))
  const code = await runCommand('docker', compose(['up', '--detach', '--wait', 'valkey']), { stdio: ['ignore', 2, 2] })
  const isThere = code === 0 && await askStore({ host: '127.0.0.1', port }, 'PING', answerDeadlineMs) === 'PONG'
  if (!isThere) {
    await stop()
    throw new Error(`docker compose up valkey failed (exit code ${code})`)
  }
  return { url, origin, stop }
}

function listRunning (): string[] {
  return (docker(compose(['ps', '--status', 'running', '--services'])) ?? '').split('\n').filter((service) => service !== '')
}

function compose (args: readonly string[]): string[] {
  return ['compose', '--file', composeFile, ...args]
}

/** Gives standard output; undefined when docker is missing, fails, or does not answer in time. */
function docker (args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: answerDeadlineMs })
  return status === 0 ? stdout : undefined
}
