import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

interface ProcessLine {
  readonly pid: number
  readonly parentPid: number
  /** As `ps` prints it: begins with T once it is stopped. */
  readonly state: string
}

const pause = new Int32Array(new SharedArrayBuffer(4))
const stopDeadlineMs = 5_000

/**
 * Stops (returns when all have stopped) or continues a process and its children, which may be in process groups of their own, as
 * PostgreSQL's are. Does nothing for a process that is gone.
 */
export function signalFamily (pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  if (signal === 'SIGCONT') {
    // Children first: a parent that acts on a child's silence must find them awake.
    for (const member of listFamily(pid).reverse()) send(member.pid, signal)
    return
  }
  // The parent first, and the children only once it has stopped: until then it may start another.
  send(pid, signal)
  waitUntilStopped(pid, () => listFamily(pid).filter((member) => member.pid === pid))
  for (const member of listFamily(pid)) send(member.pid, signal)
  waitUntilStopped(pid, () => listFamily(pid))
}

/** Lists the process ids of a process, if it is there, and of its children. */
export function listFamilyIds (pid: number): number[] {
  return listFamily(pid).map((member) => member.pid)
}

/** Gives the process id of the parent; undefined for a process that is gone. */
export function readParent (pid: number): number | undefined {
  return listProcesses().find((line) => line.pid === pid)?.parentPid
}

/** Blocks, so that the caller's next line runs against stopped processes; a signal is acted on some time after it was sent. */
function waitUntilStopped (pid: number, list: () => ProcessLine[]): void {
  const deadline = Date.now() + stopDeadlineMs
  while (list().some(({ state }) => !/^[TZX]/.test(state))) {
    if (Date.now() > deadline) throw new Error(`Process ${pid} did not stop within ${stopDeadlineMs} ms`)
    Atomics.wait(pause, 0, 0, 5)
  }
}

/** The process, if it is there, and then its children. */
function listFamily (pid: number): ProcessLine[] {
  if (pid <= 0) return []
  const all = listProcesses()
  return [...all.filter((line) => line.pid === pid), ...all.filter((line) => line.parentPid === pid)]
}

function listProcesses (): ProcessLine[] {
  return process.platform === 'linux' ? listFromProc() : listFromPs()
}

/** A bare Debian has no `ps`. */
function listFromProc (): ProcessLine[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      // pid (name) state ppid …
      const [, state = '', parentPid] = /^\d+ \(.*\) (\S+) (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? []
      return [{ pid: Number(name), parentPid: Number(parentPid), state }]
    } catch {
      // It ended while we were looking.
      return []
    }
  })
}

function listFromPs (): ProcessLine[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' })
  return stdout.split('\n').map((line) => line.trim().split(/\s+/)).filter((words) => words.length === 3)
    .map(([pid, parentPid, state = '']) => ({ pid: Number(pid), parentPid: Number(parentPid), state }))
}

function send (pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal)
  } catch {
    // It is gone already.
  }
}
