import assert from 'node:assert/strict'
import type { HttpScene, LogLine } from './http-scene.ts'
import type { RawReply } from './raw-http.ts'
import { toRequest } from './raw-http.ts'

/** Nothing listens on this port of a test machine: connections are refused. */
export const deadAddress = 'http://127.0.0.1:1'

export interface RefusalBody {
  statusCode: number
  code: string
  error: string
  message: string
}

/** Reads the body of a refusal, and fails where it has another form or tells something of the inside. */
export function readRefusal (reply: RawReply): RefusalBody {
  const text = reply.body.toString()
  assert.match(reply.values('content-type')[0] ?? '', /^application\/json/)
  const body = JSON.parse(text) as RefusalBody
  assert.deepEqual(Object.keys(body).sort(), ['code', 'error', 'message', 'statusCode'], text)
  assert.equal(body.statusCode, reply.statusCode)
  assertNothingInner(text)
  return body
}

/** Fails where a text for a client has an address of a pod, an error of a socket, or a stack. */
export function assertNothingInner (text: string): void {
  assert.doesNotMatch(text, /127\.0\.0\.1|localhost|https?:|ECONN|UND_ERR|socket|other side|node_modules|\.ts\b|\n\s*at /i)
}

/** Asks with a GET, and reads the refusal that must come. */
export async function askForRefusal (scene: HttpScene, path: string): Promise<RefusalBody & { retryAfter: string | undefined }> {
  const reply = await scene.ask(toRequest(`GET ${path}`))
  return { ...readRefusal(reply), retryAfter: reply.values('retry-after')[0] }
}

/** The lines that refusals wrote to the log. */
export function refusalLines (scene: HttpScene): LogLine[] {
  return scene.logs.filter(({ code }) => String(code).startsWith('PLT_COORDINATOR_'))
}
