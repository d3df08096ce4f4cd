// Keeps a private service for as long as the process that forked it lives, and not a moment longer.
//
// Argument: a plan as JSON, one of
//   { prefix, parent, user, endSignal, endDeadlineMs }  makes a folder <parent>/<prefix>…, that belongs to `user` ({ uid, gid }) if
//                                                       given, and runs in it what it is told to, one command at a time
//   { atEnd: [command, argument…] }                     runs the command at the end (docker compose down)
// Messages it takes: { run: [command, argument…] }, { signal }.
// Messages it sends: { folder }, { pid } once a command runs, { exit, log } when a command has ended.
//
// The parent's death, whatever the cause (SIGKILL and a crash included), closes the IPC channel: that is the one way in which
// a keeper learns that it is time. It runs in a session of its own, so a Ctrl-C in the terminal does not reach it or the service.
// Plain JavaScript, so that it starts without a loader.
import { spawn } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const plan = JSON.parse(process.argv[2])

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {})
}

if (plan.atEnd) {
  const [command, ...args] = plan.atEnd
  onParentGone(() => spawn(command, args, { stdio: 'ignore' }))
} else {
  keepService()
}

function keepService () {
  let folder
  let child
  let isParentGone = false

  try {
    folder = mkdtempSync(join(plan.parent, plan.prefix))
    if (plan.user) chownSync(folder, plan.user.uid, plan.user.gid)
  } catch (error) {
    tell({ exit: error.message, log: '' })
    leave()
    return
  }
  tell({ folder })
  process.on('message', (message) => {
    if (message.run) run(message.run)
    if (message.signal) signal(message.signal)
  })
  onParentGone(() => {
    isParentGone = true
    if (child === undefined) {
      leave()
      return
    }
    signal(plan.endSignal)
    // One that was frozen would not see the signal.
    signal('SIGCONT')
    setTimeout(() => signal('SIGKILL'), plan.endDeadlineMs).unref()
  })

  function run ([command, ...args]) {
    const logFile = join(folder, 'log')
    const log = openSync(logFile, 'w')
    // In a group of its own, so that a signal reaches what it starts too.
    child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', log, log], ...plan.user })
    closeSync(log)
    child.on('spawn', () => tell({ pid: child.pid }))
    child.on('error', (error) => end(error.message))
    child.on('exit', (code, signal) => end(signal ?? `code ${code}`))

    function end (exit) {
      child = undefined
      tell({ exit, log: readFileSync(logFile, 'utf8').slice(-4_000) })
      if (isParentGone) leave()
    }
  }

  function signal (name) {
    if (child?.pid === undefined) return
    try {
      process.kill(-child.pid, name)
    } catch {
      // It has ended, 'exit' follows.
    }
  }

  function leave () {
    // Retried, as what a killed service had started may still write.
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
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
