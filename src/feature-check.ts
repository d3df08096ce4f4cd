import type { BackgroundWork } from './background-work.ts'
import { publish } from './diagnostics.ts'
import { CoordinatorError, isCoordinatorError } from './errors.ts'
import type { CheckedStoreOptions } from './options.ts'
import type { Scripts } from './scripts.ts'

/**
 * Holds a registry's features against those recorded for the prefix, with its first call and with the first after a failure of the store:
 * beside it, or before it with `strictFeatures`. A registry that keeps no member index among others that do would make the index wrong without a sign.
 */
export class FeatureCheck {
  readonly #scripts: Scripts
  readonly #background: BackgroundWork
  readonly #options: CheckedStoreOptions
  readonly #report: (error: CoordinatorError) => void
  readonly #getFailureCount: () => number
  #isDone = false
  /** Failures of the store before the check: after another one the data may be other data. */
  #failuresSeen = 0
  #check: Promise<void> | undefined

  constructor (scripts: Scripts, background: BackgroundWork, options: CheckedStoreOptions, report: (error: CoordinatorError) => void, getFailureCount: () => number) {
    this.#scripts = scripts
    this.#background = background
    this.#options = options
    this.#report = report
    this.#getFailureCount = getFailureCount
  }

  /** What a call has to wait for; undefined for nothing. A check that could not be made is made again by the next call. */
  ready (): Promise<void> | undefined {
    if (this.#isDone && this.#failuresSeen === this.#getFailureCount()) return undefined
    if (!this.#options.strictFeatures) {
      this.#background.start('check the features', () => this.#run().catch(error => {
        // The call beside it fails as well, and its caller is told.
        if (!isCoordinatorError(error, 'PLT_COORDINATOR_UNAVAILABLE')) throw error
      }))
      return undefined
    }
    this.#check ??= this.#run().finally(() => { this.#check = undefined })
    return this.#check
  }

  async #run (): Promise<void> {
    const { keyPrefix, memberIndex, strictFeatures } = this.#options
    const failures = this.#getFailureCount()
    const own = encodeFeature(memberIndex)
    const [recorded = own] = await this.#scripts.declareFeatures({ memberIndex: own })
    if (recorded !== own) {
      const mismatch = featureMismatch(keyPrefix, recorded, own)
      if (strictFeatures) throw mismatch
      this.#report(mismatch)
    }
    this.#isDone = true
    this.#failuresSeen = failures
  }
}

/** A feature as it is recorded: its version, or '0' when it is off. */
export function encodeFeature (isOn: boolean): string {
  return isOn ? '1' : '0'
}

/** Publishes the difference and makes the error that tells it. */
export function featureMismatch (keyPrefix: string, recorded: string, own: string): CoordinatorError {
  publish('features', { keyPrefix, feature: 'memberIndex', recorded, own })
  return new CoordinatorError('PLT_COORDINATOR_FEATURE_MISMATCH',
    `Expected memberIndex to be ${recorded !== '0'}, as the key ${keyPrefix}:features says, got ${own !== '0'}; when all processes agree, HSET ${keyPrefix}:features memberIndex ${own}`)
}

export function memberIndexOff (): CoordinatorError {
  return new CoordinatorError('PLT_COORDINATOR_MEMBER_INDEX_OFF', 'listOwned() needs memberIndex: true, on every registry and member of the prefix')
}
