import assert from 'node:assert/strict'
import test from 'node:test'
import { createStrategy, toStrategy } from '../../src/strategies/create-strategy.ts'
import { leastLoaded } from '../../src/strategies/least-loaded.ts'
import { random } from '../../src/strategies/random.ts'
import { roundRobin } from '../../src/strategies/round-robin.ts'
import type { AllocationStrategy, StrategyName } from '../../src/types.ts'

const rule = "Expected strategy to be one of 'round-robin', 'least-loaded', 'random', or an object with a pick function, got "
const refusal = (got: string): object => ({ code: 'PLT_COORDINATOR_INVALID_OPTION', message: rule + got })

test('createStrategy, toStrategy: each name stands for its strategy', () => {
  for (const [name, strategy] of Object.entries({ 'round-robin': roundRobin, 'least-loaded': leastLoaded, random })) {
    assert.equal(createStrategy(name as StrategyName), strategy)
    assert.equal(toStrategy('strategy', name as StrategyName), strategy)
  }
})

test('createStrategy: any other name is refused, those every object has included', () => {
  for (const [name, got] of [
    ['fastest', '"fastest" (string)'], ['', '"" (string)'], ['Random', '"Random" (string)'], ['constructor', '"constructor" (string)'],
    ['__proto__', '"__proto__" (string)'], ['toString', '"toString" (string)'], [undefined, 'undefined'], [null, 'null'], [0, '0 (number)'], [{ pick () {} }, 'an object'],
    [['random'], 'an array']
  ]) assert.throws(() => createStrategy(name as StrategyName), refusal(String(got)))
})

test('toStrategy: an object or instance with a pick function is the strategy itself', () => {
  class Pinned { pick (): null { return null } }
  for (const strategy of [{ pick: () => null }, new Pinned()]) assert.equal(toStrategy('strategy', strategy), strategy)
})

test('toStrategy: anything else is refused', () => {
  for (const [strategy, got] of [
    ['fastest', '"fastest" (string)'], [null, 'null'], [undefined, 'undefined'], [{}, 'an object'], [{ pick: 'a' }, 'an object'], [[], 'an array'], [7, '7 (number)']
  ]) assert.throws(() => toStrategy('strategy', strategy as AllocationStrategy), refusal(String(got)))
  assert.throws(() => toStrategy('strategy', (() => null) as unknown as AllocationStrategy), { code: 'PLT_COORDINATOR_INVALID_OPTION' })
})
