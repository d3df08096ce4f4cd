/** Something to work against: a Valkey or Redis, or a PostgreSQL. */
export interface Service {
  readonly url: string
  /** Says in a few words which one this is and who started it. */
  readonly origin: string
  /** Stops what was started for it, if anything was. Resolves when it is gone. */
  stop (): Promise<void>
}

/** Says that no service is to be had; the message is meant for the person at the terminal and lists the choices. */
export class NoServiceError extends Error {}
