import { accessSync, constants, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCommand } from './run-command.ts'

/** Path of the script that installs packages with apt-get. */
export const installScript = fileURLToPath(new URL('./install.sh', import.meta.url))

/** Installs a package that the script knows; resolves to the script's exit code. */
export async function installPackage (name: string): Promise<number> {
  // Standard output belongs to the command that will run.
  return runCommand('sh', [installScript, name], { stdio: ['ignore', 2, 2] })
}

/** Says why apt-get is no choice here; undefined when it is one. */
export function findInstallObstacle (env: NodeJS.ProcessEnv): string | undefined {
  if (process.getuid?.() !== 0) return 'this is not root'
  if (!findOnPath('apt-get', env)) return 'there is no apt-get'
  try {
    const release = readFileSync('/etc/os-release', 'utf8')
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release) ? undefined : 'this is neither Debian nor Ubuntu'
  } catch {
    return 'this is neither Debian nor Ubuntu'
  }
}

export function findOnPath (name: string, env: NodeJS.ProcessEnv): string | undefined {
  return listPathFolders(env).map((folder) => join(folder, name)).find(isExecutable)
}

export function listPathFolders (env: NodeJS.ProcessEnv): string[] {
  return (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
}

export function isExecutable (file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
