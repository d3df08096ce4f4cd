// Imports one thing in a process that has loaded nothing else, and prints as JSON what that cost and which modules of the HTTP side are there.
//
// Arguments: <what> <URL of the built package>, where <what> is
//   client  iovalkey alone
//   member  Member from the package
//   plugin  the package, with its plugin registered on a Fastify application
import { createRequire } from 'node:module'

const [what, packageUrl] = process.argv.slice(2)
const { cache } = createRequire(import.meta.url)

const cpuBefore = process.cpuUsage()
const startedAt = performance.now()
const imported = await import(what === 'client' ? 'iovalkey' : packageUrl)
const ms = performance.now() - startedAt
const { user, system } = process.cpuUsage(cpuBefore)

if (what === 'plugin') {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  // Nothing listens there and nothing is sent: the plugin opens a connection of its own only for a URL.
  await app.register(imported.default, { registry: { resolveDestination: async () => null } })
  await app.ready()
  await app.close()
} else if (typeof (what === 'client' ? imported.Redis : imported.Member) !== 'function') {
  throw new Error(`What was imported is not ${what}`)
}

const loaded = Object.keys(cache).filter(file => /node_modules\/(undici|fastify|@fastify\/reply-from)\//.test(file)).length
console.log(JSON.stringify({ ms, cpuUs: user + system, loaded }))
process.exit()
