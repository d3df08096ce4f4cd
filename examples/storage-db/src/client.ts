// Whether somebody is still there to hear the answer.

import { setImmediate as loopTurn } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { StorageError } from './errors.ts'

/** Tells whether whoever asked has stopped waiting. */
export type IsGone = () => boolean

/** Tells of a request whether its client has closed the connection. */
export function watchClient ({ socket }: FastifyRequest): IsGone {
  return () => socket.destroyed || socket.readableEnded
}

/** @throws STORAGE_CLIENT_GONE */
export async function refuseGone (isGone: IsGone): Promise<void> {
  if (await hasLeft(isGone)) throw new StorageError('STORAGE_CLIENT_GONE')
}

/**
 * Whether the client has left, asked right before a write is sent. A pod that was paused (SIGSTOP, a virtual machine that is moved) finds on
 * waking requests that were given up long ago, and that the client has sent again to another pod since: to make these writes now would undo
 * newer ones. Their connections are closed, but the end of one is read only after the request itself, a turn of the event loop later.
 */
async function hasLeft (isGone: IsGone): Promise<boolean> {
  for (let turn = 0; turn < 3 && !isGone(); turn++) await loopTurn()
  return isGone()
}
