import type { Candidate } from '../types.ts'

/**
 * The figure the load-aware strategies compare: published load plus what was bound since, in the pod's own unit. A load that is not
 * a finite number ranks behind every number.
 */
export function rankedLoad ({ load, pending }: Candidate): number {
  return Number.isFinite(load) ? load + pending : Infinity
}
