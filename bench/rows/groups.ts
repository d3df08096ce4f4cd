import type { RowGroup } from '../bench.ts'
import { cached } from './cached.ts'
import { lock } from './lock.ts'
import { uncached } from './uncached.ts'

/** All groups, in the order in which they run. */
export const groups: readonly RowGroup[] = [cached, uncached, lock]
