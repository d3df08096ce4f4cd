import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Connection } from './connection.ts'
import { CoordinatorError } from './errors.ts'
import { replyCode } from './store-errors.ts'
import type { CommandKind } from './store-errors.ts'

/** One file of lua/, run by its digest. */
export class LuaScript {
  readonly kind: CommandKind
  readonly #text: string
  readonly #sha1: string

  constructor (name: string, kind: CommandKind) {
    this.kind = kind
    this.#text = readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8')
    this.#sha1 = createHash('sha1').update(this.#text).digest('hex')
  }

  /**
   * Runs the script; its text travels only when the server does not know it (after SCRIPT FLUSH, a restart, a failover).
   * @param mayWrite asked again before the text is sent, which can be long after the digest was: false gives the call up
   */
  run (connection: Connection, keys: readonly string[], args: readonly string[], mayWrite: () => boolean = () => true): Promise<unknown> {
    const { client } = connection
    return connection.run(async isAwaited => {
      try {
        return await client.evalsha(this.#sha1, keys.length, ...keys, ...args)
      } catch (error) {
        if (replyCode(error) !== 'NOSCRIPT' || !isAwaited()) throw error
        if (!mayWrite()) throw new CoordinatorError('PLT_COORDINATOR_NOT_REGISTERED', 'deregister() or close() was called before the script could be sent')
        return await client.eval(this.#text, keys.length, ...keys, ...args)
      }
    }, this.kind)
  }
}
