import type { RowGroup } from '../bench.ts'
import { cached } from './cached.ts'
import { claims } from './claims.ts'
import { growth } from './growth.ts'
import { heartbeats } from './heartbeats.ts'
import { http } from './http.ts'
import { lock } from './lock.ts'
import { memory } from './memory.ts'
import { placement } from './placement.ts'
import { start } from './start.ts'
import { storm } from './storm.ts'
import { uncached } from './uncached.ts'

/** All groups, in the order in which they run. */
export const groups: readonly RowGroup[] = [cached, uncached, claims, storm, lock, http, heartbeats, memory, growth, start, placement]
