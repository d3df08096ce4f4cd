import type { FastifyReply, FastifyRequest } from 'fastify'

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

/** Answers at the end of a chain of promises: where that fails too (the head is out already) there is nobody to throw to. */
export function endSafely (reply: FastifyReply, answer: () => void): void {
  try {
    answer()
  } catch (err) {
    reply.log.error({ err }, 'A request could not be answered')
    reply.raw.destroy()
  }
}
