// Tries every route and every promise of the example once, against a coordinator that runs.

import { print, Smoke } from './smoke/checks.ts'
import { tryFanOut } from './smoke/fan-out.ts'
import { tryPodsThatEnd } from './smoke/pods-that-end.ts'
import { tryTenantsAndKeys } from './smoke/tenants-and-keys.ts'
import { tryTransactions } from './smoke/transactions.ts'
import type { Stack } from './stack.ts'

const parts = [
  { title: 'Tenants and keys', tryPart: tryTenantsAndKeys },
  { title: 'Transactions', tryPart: tryTransactions },
  { title: 'Fan-out', tryPart: tryFanOut },
  { title: 'Pods that end', tryPart: tryPodsThatEnd }
]

/** Resolves to whether everything held. Tenants it made are deleted at the end. */
export async function runSmoke (url: string, stack: Stack | null): Promise<boolean> {
  const smoke = new Smoke(url, stack)
  const pods = await smoke.api.listPods()
  print(`${url}, ${pods.length} pods: ${pods.map(pod => pod.memberId).join(', ')}`)
  for (const { title, tryPart } of parts) {
    print(title)
    // What a part prepares for its checks may fail too.
    await tryPart(smoke).catch((error: Error) => smoke.check(`${title} could be tried`, () => Promise.reject(error)))
  }
  await smoke.cleanUp()
  print(`${smoke.passed} passed, ${smoke.failed.length} failed, ${smoke.skipped.length} skipped`)
  for (const claim of smoke.failed) print(`failed: ${claim}`)
  return smoke.failed.length === 0
}
