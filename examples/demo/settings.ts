/** The store, started by `npm run demo` when there is none. */
export const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6390'

export const destinationIds = Array.from({ length: 300 }, (_, i) => `tenant-${String(i + 1).padStart(3, '0')}`)

/** Seconds that a pod's record outlives its last heartbeat: how long a pod that was killed still looks live. */
export const ttl = 2

/** Milliseconds between two heartbeats, about a third of the ttl so that one may be late. */
export const heartbeatInterval = 600

/** Milliseconds that a pod gets for an answer; then the coordinator says 504. */
export const podTimeout = 2_000

/** Milliseconds for which a coordinator may use a binding that it read, without asking the store again. */
export const cacheTtl = 1_000
