/** Keys and the channel of one prefix. A base ends in a colon: a script adds the id to it. */
export interface Keys {
  /** Set of memberIds. */
  readonly members: string
  /** Base of the hashes that are pods' records. */
  readonly memberBase: string
  /** Base of the sets of memberIds bound to a destination. */
  readonly destinationBase: string
  /** Base of the sets of destination ids bound to a pod (member index). */
  readonly ownedBase: string
  /** Base of the hashes that are locks. */
  readonly lockBase: string
  /** Hash of the features the prefix is used with. */
  readonly features: string
  /** Channel on which changes are published. Full name: iovalkey puts its keyPrefix before keys, never before channels. */
  readonly changesChannel: string
}

/**
 * Builds every name of a prefix; the only place that does.
 * @param clientPrefix the `keyPrefix` of the iovalkey client, which it adds to keys by itself
 */
export function buildKeys (prefix: string, clientPrefix: string): Keys {
  return {
    members: `${prefix}:members`,
    memberBase: `${prefix}:member:`,
    destinationBase: `${prefix}:destination:`,
    ownedBase: `${prefix}:owned:`,
    lockBase: `${prefix}:lock:`,
    features: `${prefix}:features`,
    changesChannel: `${clientPrefix}${prefix}:changes`
  }
}

/**
 * True when every key that starts with this prefix falls into one slot of a cluster: it holds a whole, non-empty hash tag.
 * Only the first brace counts, as in the cluster specification.
 */
export function hasHashTag (prefix: string): boolean {
  const open = prefix.indexOf('{')
  return open !== -1 && prefix.indexOf('}', open + 1) > open + 1
}
