import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test from 'node:test'
import { BackgroundWork } from '../src/background-work.ts'
import { diagnosticsChannels } from '../src/diagnostics.ts'
import { CoordinatorError } from '../src/errors.ts'
import { encodeFeature, FeatureCheck, featureMismatch, memberIndexOff } from '../src/feature-check.ts'
import { checkRegistryOptions } from '../src/options.ts'
import type { Scripts } from '../src/scripts.ts'
import { until } from './support/store.ts'

interface Stage {
  check: FeatureCheck
  background: BackgroundWork
  asked: Readonly<Record<string, string>>[]
  reports: CoordinatorError[]
}

/** The recorded value, or the failure of each question in turn; the last one stands for all later ones. */
function setStage (answers: (string | Error)[], { memberIndex = false, strictFeatures = false, onReport = (): void => {} } = {}): Stage & { set: (onReport: () => void) => void, failStore: () => void } {
  const asked: Readonly<Record<string, string>>[] = []
  const reports: CoordinatorError[] = []
  let react = onReport
  let failureCount = 0
  const report = (error: CoordinatorError): void => {
    reports.push(error)
    react()
  }
  const scripts = {
    async declareFeatures (features: Readonly<Record<string, string>>) {
      const answer = answers[Math.min(asked.length, answers.length - 1)]
      asked.push(features)
      await turn()
      if (answer instanceof Error) throw answer
      return [answer]
    }
  }
  const background = new BackgroundWork(report)
  const options = checkRegistryOptions({ redis: 'redis://h', keyPrefix: 'p', memberIndex, strictFeatures })
  const check = new FeatureCheck(scripts as unknown as Scripts, background, options, report, () => failureCount)
  return { check, background, asked, reports, set: next => { react = next }, failStore: () => { failureCount++ } }
}

const away = new CoordinatorError('PLT_COORDINATOR_UNAVAILABLE', 'away')
const refused = new CoordinatorError('PLT_COORDINATOR_STORE_REFUSED', 'no permission')

const turn = async (): Promise<void> => { await new Promise(resolve => setImmediate(resolve)) }

function listen (t: test.TestContext): unknown[] {
  const heard: unknown[] = []
  const hear = (message: unknown): void => { heard.push(message) }
  subscribe(diagnosticsChannels.features, hear)
  t.after(() => unsubscribe(diagnosticsChannels.features, hear))
  return heard
}

test('FeatureCheck: no call waits for it, and 50 first calls make one check', async () => {
  const { check, background, asked, reports } = setStage(['1'], { memberIndex: true })
  for (let at = 0; at < 50; at++) assert.equal(check.ready(), undefined)
  await background.close()
  assert.deepEqual(asked, [{ memberIndex: '1' }])
  assert.deepEqual(reports, [])
})

test('FeatureCheck: once made it is not made again, agreeing or not', async () => {
  for (const recorded of ['0', '1']) {
    const { check, asked, reports } = setStage([recorded])
    check.ready()
    await until(() => asked.length === 1, 'it is asked')
    for (let at = 0; at < 20; at++) {
      check.ready()
      await turn()
    }
    assert.equal(asked.length, 1)
    assert.equal(reports.length, recorded === '0' ? 0 : 1)
  }
})

test('FeatureCheck: a difference is reported and published, in both directions', async t => {
  const heard = listen(t)
  for (const [memberIndex, recorded, text] of [
    [true, '0', 'false, as the key p:features says, got true; when all processes agree, HSET p:features memberIndex 1'],
    [false, '1', 'true, as the key p:features says, got false; when all processes agree, HSET p:features memberIndex 0']
  ] as const) {
    const { check, background, reports } = setStage([recorded], { memberIndex })
    check.ready()
    await background.close()
    assert.deepEqual(reports.map(({ code, message }) => [code, message]), [
      ['PLT_COORDINATOR_FEATURE_MISMATCH', `Expected memberIndex to be ${text}`]
    ])
  }
  assert.deepEqual(heard, [
    { keyPrefix: 'p', feature: 'memberIndex', recorded: '0', own: '1' }, { keyPrefix: 'p', feature: 'memberIndex', recorded: '1', own: '0' }
  ])
})

test('FeatureCheck: one that could not be made is made again by the next call, and reported unless the store is away', async () => {
  const { check, asked, reports, background } = setStage([away, refused, '0'])
  for (const count of [1, 2, 3]) {
    await until(() => {
      check.ready()
      return asked.length >= count
    }, `question ${count}`)
  }
  await background.close()
  assert.deepEqual(reports, [refused], 'who calls while the store is away is told by the call')
  check.ready()
  assert.equal(asked.length, 3)
})

test('FeatureCheck: a call made while the failure is being reported does not lose the check', async () => {
  const { check, asked, set } = setStage([refused, '0'])
  set(() => { check.ready() })
  check.ready()
  await until(() => asked.length === 1, 'it is asked')
  await until(() => {
    check.ready()
    return asked.length === 2
  }, 'it is asked again', 3000)
})

test('FeatureCheck: a strict one is waited for by every call until it agrees, 50 of them share it', async () => {
  const { check, asked } = setStage(['1'], { memberIndex: true, strictFeatures: true })
  const waiting = Array.from({ length: 50 }, () => check.ready())
  assert.ok(waiting.every(each => each instanceof Promise))
  await Promise.all(waiting)
  assert.equal(asked.length, 1)
  assert.equal(check.ready(), undefined)
})

test('FeatureCheck: a strict one rejects every call while the features differ, and asks each time', async t => {
  const heard = listen(t)
  const { check, asked, reports } = setStage(['0', '0', '1'], { memberIndex: true, strictFeatures: true })
  for (let at = 0; at < 2; at++) await assert.rejects(async () => await check.ready(), { code: 'PLT_COORDINATOR_FEATURE_MISMATCH' })
  assert.deepEqual([asked.length, heard.length, reports.length], [2, 2, 0], 'who is told by an error is not told twice')
  await check.ready()
  assert.equal(check.ready(), undefined)
})

test('FeatureCheck: a strict one that could not be made rejects with the reason and is made again', async () => {
  const { check, asked } = setStage([away, '1'], { memberIndex: true, strictFeatures: true })
  await assert.rejects(async () => await check.ready(), away)
  await check.ready()
  assert.equal(asked.length, 2)
})

test('FeatureCheck: after a failure of the store it is made again, once, and a difference is reported again', async () => {
  const { check, asked, reports, failStore } = setStage(['0', '1', '1'])
  const settle = async (count: number): Promise<void> => {
    check.ready()
    await until(() => asked.length === count, `question ${count}`)
    for (let at = 0; at < 20; at++) {
      await turn()
      check.ready()
    }
    assert.equal(asked.length, count)
  }
  await settle(1)
  assert.deepEqual(reports, [])
  failStore()
  failStore()
  await settle(2)
  assert.deepEqual(reports.map(({ code }) => code), ['PLT_COORDINATOR_FEATURE_MISMATCH'])
  failStore()
  await settle(3)
  assert.equal(reports.length, 2)
})

test('FeatureCheck: a failure of the store while it is being made leaves it to be made again', async () => {
  const { check, asked, background, failStore } = setStage(['0'])
  check.ready()
  while (asked.length === 0) await null // the answer takes a turn of the event loop: it is still to come
  failStore()
  await until(() => {
    check.ready()
    return asked.length === 2
  }, 'it is asked again')
  await background.close()
})

test('FeatureCheck: after a failure of the store a strict one is waited for again', async () => {
  const { check, asked, failStore } = setStage(['1', '0', '1'], { memberIndex: true, strictFeatures: true })
  await check.ready()
  assert.equal(check.ready(), undefined)
  failStore()
  await assert.rejects(async () => await check.ready(), { code: 'PLT_COORDINATOR_FEATURE_MISMATCH' })
  await check.ready()
  assert.equal(check.ready(), undefined)
  assert.equal(asked.length, 3)
})

test('encodeFeature, featureMismatch, memberIndexOff: say which value is recorded and which method needs what', () => {
  assert.deepEqual([encodeFeature(true), encodeFeature(false)], ['1', '0'])
  assert.match(featureMismatch('p', '2', '0').message, /^Expected memberIndex to be true, as the key p:features says, got false; .* HSET p:features memberIndex 0$/)
  assert.equal(memberIndexOff().code, 'PLT_COORDINATOR_MEMBER_INDEX_OFF')
  assert.match(memberIndexOff().message, /listOwned\(\).*memberIndex: true/)
})
