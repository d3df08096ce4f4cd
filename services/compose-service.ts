import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { runAtEnd } from './kept-process.ts'
import { runCommand } from './run-command.ts'
import type { Service } from './service.ts'

const composeFile = fileURLToPath(new URL('../docker-compose.yml', import.meta.url))
const answerDeadlineMs = 10_000
/** Others' services of the same file stay up, those that came up meanwhile too; the last to leave takes the network down. */
const takeDown = `
"$@" rm --stop --force --volumes "$0"
[ -n "$("$@" ps --status running --services)" ] || "$@" down --volumes`

/** A service of docker-compose.yml. */
export interface ComposedService {
  readonly name: string
  /** Where it is reached, by the port that it publishes. */
  readonly url: string
  /** Tells whether it answers there. */
  answers (deadlineMs: number): Promise<boolean>
}

/**
 * Brings up one service of docker-compose.yml on the port it publishes and takes it down at the end, but only if it was not up
 * before. Undefined when no engine answers. Throws when the service does not come up.
 */
export async function openComposeService ({ name, url, answers }: ComposedService): Promise<Service | undefined> {
  if (docker(['info']) === undefined || docker(['compose', 'version']) === undefined) return undefined
  const origin = 'Docker Compose'
  if (listRunning().includes(name)) return { url, origin: `${origin}, already up`, stop: async () => {} }

  // Before `up`, so that a half-started service is taken down too.
  const stop = runAtEnd('sh', ['-c', takeDown, name, 'docker', ...compose([])])
  const code = await runCommand('docker', compose(['up', '--detach', '--wait', name]), { stdio: ['ignore', 2, 2] })
  const isThere = code === 0 && await answers(answerDeadlineMs)
  if (!isThere) {
    await stop()
    throw new Error(`docker compose up ${name} failed (exit code ${code})`)
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
