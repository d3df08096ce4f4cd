import { Readable } from 'node:stream'
import type { PodBody } from './pod-body.ts'

/** Starts when the last byte of the request has been read: a slow upload is not a slow pod. */
export function startRequestTimer (ms: number | undefined, body: PodBody, onTime: () => void): { stop (): void } {
  if (ms === undefined) return { stop () {} }
  let timer: NodeJS.Timeout | undefined
  const start = (): void => { timer = setTimeout(onTime, ms) }
  if (body instanceof Readable) body.once('end', start)
  else start()
  return {
    stop () {
      clearTimeout(timer)
      if (body instanceof Readable) body.off('end', start)
    }
  }
}
