import { spawnSync } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import type { SystemUser } from './kept-process.ts'

/** PostgreSQL refuses to run as root: gives the user to run it as when this process is root, undefined when it is not. */
export function findUnprivilegedUser (): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const user = readUser('postgres') ?? readUser('nobody')
  if (user === undefined) throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody to run it as')
  return user
}

/** Gives a folder for temporary files that the user can reach: root's own (TMPDIR) may be closed to others. */
export function findTemporaryFolder (user: SystemUser | undefined): string {
  const folders = [tmpdir(), '/tmp', '/var/tmp']
  return folders.find((folder) => user === undefined || isReachable(folder, user)) ?? tmpdir()
}

function readUser (name: string): SystemUser | undefined {
  const [uid, gid] = ['-u', '-g'].map((option) => {
    const { status, stdout } = spawnSync('id', [option, name], { encoding: 'utf8' })
    return status === 0 ? Number(stdout) : undefined
  })
  return uid && gid ? { uid, gid } : undefined
}

function isReachable (folder: string, user: SystemUser): boolean {
  try {
    let path = realpathSync(folder)
    while (isSearchable(path, user)) {
      if (path === dirname(path)) return true
      path = dirname(path)
    }
    return false
  } catch {
    return false
  }
}

function isSearchable (folder: string, { uid, gid }: SystemUser): boolean {
  const { mode, uid: owner, gid: group } = statSync(folder)
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
  return (mode & bit) !== 0
}
