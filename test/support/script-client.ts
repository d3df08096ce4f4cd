import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { ReplyError } from 'iovalkey'
import type { Redis } from 'iovalkey'

/** A script as it was handed to the client. */
export interface SentScript {
  /** Name of the file of lua/. */
  readonly script: string
  readonly command: 'evalsha' | 'eval'
  readonly keys: string[]
  readonly args: string[]
}

/** What to do with one script that is about to be sent: wait, or throw in place of the server. */
export type Intercept = (sent: SentScript) => void | Promise<void>

/** A client for one or several members, of which a test sees each script that was executed or is under way, and may hold it back or fail it. */
export interface ScriptClient {
  readonly client: Redis
  readonly sent: SentScript[]
  /** Called before a script goes to the server. */
  intercept: Intercept
  /** Called after the server executed it, before its reply comes back. */
  interceptReply: Intercept
  count (script: string): number
}

const folder = new URL('../../lua/', import.meta.url)
const nameByText = new Map(readdirSync(folder).map(file => [readFileSync(new URL(file, folder), 'utf8'), file.replace('.lua', '')]))
const nameByDigest = new Map([...nameByText].map(([text, name]) => [createHash('sha1').update(text).digest('hex'), name]))

/** Wraps a client, which stays whose it is; everything but scripts goes through as it came. */
export function watchScripts (redis: Redis): ScriptClient {
  const watched: ScriptClient = {
    client: new Proxy(redis, {
      get (target, property) {
        if (property === 'evalsha' || property === 'eval') return (...args: unknown[]) => run(property, args)
        const value: unknown = Reflect.get(target, property)
        return typeof value === 'function' ? value.bind(target) : value
      }
    }),
    sent: [],
    intercept: () => {},
    interceptReply: () => {},
    count: script => watched.sent.filter(each => each.script === script).length
  }

  async function run (command: 'evalsha' | 'eval', [text, keyCount, ...rest]: unknown[]): Promise<unknown> {
    const script = (command === 'eval' ? nameByText : nameByDigest).get(String(text)) ?? 'unknown'
    const all = rest.map(String)
    const sent: SentScript = { script, command, keys: all.slice(0, Number(keyCount)), args: all.slice(Number(keyCount)) }
    watched.sent.push(sent)
    await watched.intercept(sent)
    try {
      const reply = await redis.call(command, [text, keyCount, ...rest] as string[])
      await watched.interceptReply(sent)
      return reply
    } catch (error) {
      // The server's own first time with a script is no concern of a test: what counts is what it executed.
      if (String(error).includes('NOSCRIPT')) watched.sent.splice(watched.sent.indexOf(sent), 1)
      throw error
    }
  }

  return watched
}

/** The answer of a server that does not know a script. */
export function noScript (): Error {
  return new ReplyError('NOSCRIPT No matching script. Please use EVAL.', '')
}

/** A promise and the function that resolves it. */
export function gate (): { readonly passed: Promise<void>, open: () => void } {
  let open = (): void => {}
  const passed = new Promise<void>(resolve => { open = resolve })
  return { passed, open }
}
