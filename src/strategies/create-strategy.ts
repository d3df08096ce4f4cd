import { CoordinatorError, describe } from '../errors.ts'
import type { AllocationStrategy, StrategyName } from '../types.ts'
import { leastLoaded } from './least-loaded.ts'
import { random } from './random.ts'
import { roundRobin } from './round-robin.ts'

const strategies: Readonly<Record<StrategyName, AllocationStrategy>> = {
  'round-robin': roundRobin,
  'least-loaded': leastLoaded,
  random
}

/** The built-in strategy of that name, to wrap in one of your own. @throws PLT_COORDINATOR_INVALID_OPTION for any other name */
export function createStrategy (name: StrategyName): AllocationStrategy {
  if (!isStrategyName(name)) throw expected('strategy', name)
  return strategies[name]
}

/** What a strategy option of that name stands for. @throws PLT_COORDINATOR_INVALID_OPTION */
export function toStrategy (option: 'strategy' | 'fanOutStrategy', strategy: StrategyName | AllocationStrategy): AllocationStrategy {
  if (isStrategyName(strategy)) return strategies[strategy]
  if (typeof strategy !== 'object' || strategy === null || typeof strategy.pick !== 'function') throw expected(option, strategy)
  return strategy
}

function isStrategyName (name: unknown): name is StrategyName {
  return typeof name === 'string' && Object.hasOwn(strategies, name)
}

function expected (option: string, value: unknown): CoordinatorError {
  const names = Object.keys(strategies).map(name => `'${name}'`).join(', ')
  return new CoordinatorError('PLT_COORDINATOR_INVALID_OPTION', `Expected ${option} to be one of ${names}, or an object with a pick function, got ${describe(value)}`)
}
