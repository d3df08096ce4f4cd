// Keeps a private store for as long as the process that forked it lives, and not a moment longer.
//
// Arguments: run <command> [argument…]    starts a store with a new folder as its working directory; its end ends this process
//            after <command> [argument…]  starts nothing now and runs the command at the end (docker compose down)
// Messages:  { pid } once the store runs, { exit, log } when it ended by itself.
//
// The parent's death, whatever the cause (SIGKILL and a crash included), closes the IPC channel: that is the one way in which
// a keeper learns that it is time. It runs in a session of its own, so a Ctrl-C in the terminal does not reach it or the store.
// Plain JavaScript, so that it starts without a loader.
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const stopDeadlineMs = 3_000

const [mode, command, ...args] = process.argv.slice(2)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {})
}

if (mode === 'run') {
  runStore()
} else {
  onParentGone(() => spawn(command, args, { stdio: 'ignore' }))
}

function runStore () {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-store-'))
  const logFile = join(folder, 'log')
  const log = openSync(logFile, 'w')
  const store = spawn(command, args, { cwd: folder, stdio: ['ignore', log, log] })
  closeSync(log)

  onParentGone(() => {
    store.kill('SIGTERM')
    setTimeout(() => store.kill('SIGKILL'), stopDeadlineMs).unref()
  })

  store.on('spawn', () => tell({ pid: store.pid }))
  store.on('error', (error) => end(error.message))
  store.on('exit', (code, signal) => end(signal ?? `code ${code}`))

  function end (exit) {
    const message = { exit, log: readFileSync(logFile, 'utf8').slice(-4_000) }
    rmSync(folder, { recursive: true, force: true })
    tell(message)
    if (process.connected) process.disconnect()
  }
}

function onParentGone (action) {
  process.once('disconnect', action)
  // A parent that died while this process was still loading: there may be no event any more.
  if (!process.connected) {
    process.off('disconnect', action)
    action()
  }
}

function tell (message) {
  if (process.connected) {
    // A parent that dies at this moment is reported by 'disconnect'.
    process.send(message, () => {})
  }
}
