import { spawn } from 'node:child_process'
import type { SpawnOptions } from 'node:child_process'
import { constants } from 'node:os'

/** The signals that end a run: they are passed on to the command that runs, and its store is stopped after it. */
export const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Milliseconds a command has to end after a signal, before it is killed: a store must not stay for a command that hangs. */
const endDeadlineMs = 10_000
/** Milliseconds after a Ctrl-C in a terminal until SIGINT is sent again, in case only this process received it. */
const repeatDelayMs = 2_000

/** The exit code by which a shell reports a process that a signal ended. */
export function signalExitCode (signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}

/** How to run a command: as `spawn` does, and the signal sent to it in place of SIGHUP. */
export interface RunOptions extends SpawnOptions {
  readonly hangUpSignal?: NodeJS.Signals
}

/**
 * Runs a command to its end, its standard streams inherited unless given, and passes end signals on to it. Resolves to its exit
 * code: 128 + signal when a signal ended it, 127 when it could not be started.
 */
export async function runCommand (command: string, args: readonly string[], options: RunOptions = {}): Promise<number> {
  const { hangUpSignal = 'SIGHUP', ...spawnOptions } = options
  const child = spawn(command, args, { stdio: 'inherit', ...spawnOptions })
  const timers: NodeJS.Timeout[] = []

  const forward = (received: NodeJS.Signals): void => {
    const signal = received === 'SIGHUP' ? hangUpSignal : received
    // A terminal sends the SIGINT of Ctrl-C to the whole foreground group, so the child has it already, and a second one
    // means "at once" to many programs.
    const fromTerminal = signal === 'SIGINT' && process.stdin.isTTY
    if (fromTerminal) {
      timers.push(setTimeout(() => child.kill(signal), repeatDelayMs))
    } else {
      child.kill(signal)
    }
    timers.push(setTimeout(() => child.kill('SIGKILL'), endDeadlineMs))
  }
  for (const signal of endSignals) process.on(signal, forward)

  try {
    return await new Promise<number>((resolve) => {
      child.on('error', (error) => {
        console.error(`${command}: ${error.message}`)
        resolve(127)
      })
      child.on('exit', (code, signal) => resolve(signal ? signalExitCode(signal) : code ?? 1))
    })
  } finally {
    for (const timer of timers) clearTimeout(timer)
    for (const signal of endSignals) process.off(signal, forward)
  }
}
