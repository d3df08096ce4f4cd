import { readFileSync } from 'node:fs'

const lookIntervalMs = 500

/**
 * Ends this process (by SIGTERM to itself) when the package manager that launched it is gone. A signal to `npm` alone ends
 * `npm`, or the shell between it and us, and we would go on, with a store, for as long as the command runs. Does nothing outside a
 * package script: there a parent that leaves can be what its user wants (`command &`).
 */
export function endWithLauncher (env: NodeJS.ProcessEnv = process.env): void {
  if (!env['npm_lifecycle_event']) return
  const parent = process.ppid
  const packageManager = findBehindShell(parent)
  const timer = setInterval(() => {
    if (process.ppid === parent && (packageManager === undefined || isThere(packageManager))) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, lookIntervalMs)
  timer.unref()
}

/** Where a shell stayed between the package manager and us (Linux only): the process that started that shell. */
function findBehindShell (parent: number): number | undefined {
  try {
    // pid (name) state ppid …
    const [, name, ppid] = /^\d+ \((.*)\) \S+ (\d+)/s.exec(readFileSync(`/proc/${parent}/stat`, 'utf8')) ?? []
    return name !== undefined && /^(sh|dash|bash|ash|zsh)$/.test(name) ? Number(ppid) : undefined
  } catch {
    return undefined
  }
}

function isThere (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
