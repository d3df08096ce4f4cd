import type { Spread } from './statistics.ts'
import type { Target } from './targets.ts'

/**
 * met: the target holds · missed: it does not, by more than identical code differs from itself · noise: it does not, by less than that ·
 * undecided: the control is too wide to tell · printed: there is no target · smoke: too short a run to judge anything
 */
export type Verdict = 'met' | 'missed' | 'noise' | 'undecided' | 'printed' | 'smoke'

/** Width of a control, from its 5 % to its 95 % quantile, above which a comparison is run again, longer. */
export const widestControl = 0.2

export function isWide (control: Spread): boolean {
  return !(control.p95 - control.p5 <= widestControl)
}

/**
 * Holds a value against its target.
 * @param control what identical code came to against itself, 1 being equal; absent for an exact count, where nothing is noise
 */
export function judge (value: number, target: Target | undefined, control?: Spread): Verdict {
  if (target === undefined) return 'printed'
  const { atMost, atLeast } = target
  const bound = atMost ?? atLeast ?? NaN
  const isHeld = atMost === undefined ? value >= bound : value <= bound
  if (control === undefined) return isHeld ? 'met' : 'missed'
  const distance = value / bound
  const isClear = distance > 1 ? distance > control.p95 : distance < control.p5
  if (isClear) return isHeld ? 'met' : 'missed'
  if (isWide(control)) return 'undecided'
  return isHeld ? 'met' : 'noise'
}
