import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isExecutable, listPathFolders } from './installation.ts'

/** Where packages put PostgreSQL outside of the PATH. A star stands for what differs: a version mostly. */
const usualPlaces = [
  '/usr/lib/postgresql/*/bin', // Debian, Ubuntu
  '/usr/pgsql-*/bin', // PostgreSQL's own packages for Red Hat and its like
  '/usr/libexec/postgresql*', // Alpine
  '/opt/homebrew/opt/postgresql@*/bin', // Homebrew: Apple silicon, Intel, Linux
  '/usr/local/opt/postgresql@*/bin',
  '/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin',
  '/Applications/Postgres.app/Contents/Versions/*/bin'
]

/**
 * Gives the folder with `postgres` and `initdb`: the one that COORDINATOR_POSTGRES_BIN names and no other if it is set, else the
 * first of the PATH, else the newest of the usual places.
 */
export function findPostgresFolder (env: NodeJS.ProcessEnv): string | undefined {
  const named = env['COORDINATOR_POSTGRES_BIN']
  const folders = named ? [named] : [...listPathFolders(env), ...usualPlaces.flatMap(listNewestFirst)]
  return folders.find((folder) => isExecutable(join(folder, 'postgres')) && isExecutable(join(folder, 'initdb')))
}

function listNewestFirst (place: string): string[] {
  const [beforeStar = '', afterStar = ''] = place.split('*')
  const parent = dirname(`${beforeStar}x`)
  const start = beforeStar.slice(parent.length + 1)
  const versions = list(parent).filter((name) => name.startsWith(start)).map((name) => name.slice(start.length))
  versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return versions.map((version) => beforeStar + version + afterStar)
}

function list (folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
