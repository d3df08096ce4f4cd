import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Cluster, Redis } from 'iovalkey'
import { findFreePort } from '../../services/free-port.ts'
import { findBinary } from './own-store.ts'
import { until } from './store.ts'

/** A cluster of three primaries; gone after the test. */
export interface OwnCluster {
  readonly ports: readonly number[]
  /** Opens a Cluster client, closed after the test. */
  client (options?: ConstructorParameters<typeof Cluster>[1]): Cluster
  /** A plain client to each node, closed after the test. */
  readonly nodes: readonly Redis[]
  /** Names of all keys, of all nodes, sorted. */
  keys (): Promise<string[]>
}

const ranges = [[0, 5460], [5461, 10922], [10923, 16383]] as const

/** Starts a cluster of the binary under test, by raw commands: valkey-cli need not be there. */
export async function startOwnCluster (t: TestContext): Promise<OwnCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'coordinator-cluster-'))
  const servers = await Promise.all(ranges.map(() => startNode(folder)))
  t.after(async () => {
    for (const { server } of servers) {
      if (server.exitCode !== null || server.signalCode !== null) continue
      const ended = once(server, 'exit')
      server.kill('SIGKILL')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const ports = servers.map(({ port }) => port)
  const nodes = ports.map(port => new Redis({ port, host: '127.0.0.1' }))
  for (const node of nodes) node.on('error', () => {})
  t.after(() => { for (const node of nodes) node.disconnect() })

  for (const [i, node] of nodes.entries()) {
    await until(() => node.ping().then(() => true, () => false), 'the node answers')
    await node.call('CLUSTER', 'ADDSLOTSRANGE', ...(ranges[i] as readonly [number, number]).map(String))
    await node.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))
  }
  for (const { port, busPort } of servers.slice(1)) await nodes[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort))
  await until(async () => {
    const infos = await Promise.all(nodes.map(node => node.call('CLUSTER', 'INFO') as Promise<string>))
    return infos.every(info => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3') && info.includes('cluster_slots_ok:16384'))
  }, 'the cluster is whole', 30_000)

  return {
    ports,
    nodes,
    client (options = {}) {
      const client = new Cluster(ports.map(port => ({ host: '127.0.0.1', port })), options)
      client.on('error', () => {})
      t.after(() => client.disconnect())
      return client
    },
    keys: async () => (await Promise.all(nodes.map(node => node.keys('*')))).flat().sort()
  }
}

async function startNode (folder: string): Promise<{ server: ReturnType<typeof spawn>, port: number, busPort: number }> {
  const [port, busPort] = [await findFreePort(), await findFreePort()]
  const server = spawn(findBinary(), [
    '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, '--cluster-enabled', 'yes',
    '--cluster-config-file', `nodes-${port}.conf`, '--cluster-node-timeout', '5000', '--cluster-port', String(busPort)
  ], { stdio: 'ignore' })
  return { server, port, busPort }
}
