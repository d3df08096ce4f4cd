// A process of an application that says nothing by itself: what is on its stdout beside its report, or on its stderr, came from the library
// or its client. Started by runOutageProcess(); usage: outage-process.ts <mode> <url> ['borrowed']
import { subscribe } from 'node:diagnostics_channel'
import { Redis } from 'iovalkey'
import { diagnosticsChannels, Member, Registry } from '../../src/index.ts'
import type { CoordinatorError } from '../../src/index.ts'

const [mode = '', url = '', kind = 'own'] = process.argv.slice(2)
const told: string[] = []
const published: string[] = []
let rejections = 0

process.on('unhandledRejection', () => { rejections++ })
// The mode 'deaf' is an application that listens to nothing at all.
if (mode !== 'deaf') subscribe(diagnosticsChannels.error, message => { published.push((message as { error: CoordinatorError }).error.code) })

function hear (error: CoordinatorError): void {
  told.push(error.code)
  if (mode.endsWith('-listener')) throw new Error('the logger is down')
}

const client = kind === 'borrowed' ? new Redis(url) : null
const store = {
  redis: client ?? url,
  keyPrefix: 'p',
  memberIndex: true,
  storeTimeout: 300,
  onError: mode === 'deaf' ? undefined : mode === 'async-listener' ? async (error: CoordinatorError) => hear(error) : hear
}
const registry = new Registry(store)
const member = new Member({ ...store, memberId: 'pod-1', address: 'http://pod-1.test:3000', ttl: 1 })

if (mode === 'never-reachable') {
  const calls = Promise.allSettled([registry.resolveDestination('tenant-1', { claimOnMiss: true }), member.register(), member.heartbeat()])
  await Promise.all([registry.close(), member.close()])
  await calls
} else {
  await member.register()
  const failures = { beats: 0, requests: 0 }
  const count = (what: keyof typeof failures): void => {
    failures[what]++
    process.send?.(failures)
  }
  const beats = setInterval(async () => { if (!await member.heartbeat()) count('beats') }, 50)
  const requests = setInterval(() => { registry.resolveDestination(`tenant-${Math.random()}`, { claimOnMiss: true }).catch(() => count('requests')) }, 20)
  await registry.resolveDestination('tenant-1', { claimOnMiss: true })
  process.stdout.write('ready\n')
  await new Promise(resolve => process.stdin.once('data', resolve))
  clearInterval(beats)
  clearInterval(requests)
  process.stdin.destroy()
  await Promise.all([registry.close(), member.close()])
}
client?.disconnect()
process.stdout.write(`${JSON.stringify({ told, published, rejections })}\n`)
// No process.exit(): what a closed instance left open would keep this process alive.
