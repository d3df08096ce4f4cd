import type { FastifyRequest } from 'fastify'

/** Calls back the application; that it throws, or rejects, is logged and costs nothing else. */
export function callBack (request: FastifyRequest, name: string, callback: () => unknown): void {
  const log = (error: unknown): void => request.log.warn({ code: 'PLT_COORDINATOR_CALLBACK_FAILED', err: error }, `${name} failed`)
  try {
    const pending: unknown = callback()
    if (pending !== undefined) Promise.resolve(pending).catch(log)
  } catch (error) {
    log(error)
  }
}
