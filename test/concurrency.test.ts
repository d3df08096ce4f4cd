import assert from 'node:assert/strict'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { ResolvedDestination } from '../src/index.ts'
import { startRegistryProcess } from './support/registry-process.ts'
import type { PlainRegistryOptions } from './support/registry-process.ts'
import { setScene, storeUrl, until } from './support/store.ts'
import type { Scene } from './support/store.ts'

const both = { claimOnMiss: true, reassignOrphans: true }
const callsPerRegistry = 25

/** 8 registries in 4 processes; `race` asks each of them 25 times at once: 200 calls. */
async function startRace (t: TestContext, scene: Scene, options: Partial<PlainRegistryOptions> = {}): Promise<(id: string) => Promise<(ResolvedDestination | null)[]>> {
  const plain = { redis: storeUrl, keyPrefix: scene.keyPrefix, memberIndex: true, ...options }
  const processes = await Promise.all(Array.from({ length: 4 }, () => startRegistryProcess(t, plain, 2)))
  return async id => (await Promise.all(processes.map(each => each.resolve(id, both, callsPerRegistry)))).flat()
}

async function owners (scene: Scene, destinationId: string, memberIds: string[]): Promise<string[]> {
  const found = await Promise.all(memberIds.map(async memberId => await scene.raw.sismember(scene.key('owned', memberId), destinationId) === 1 ? [memberId] : []))
  return found.flat()
}

for (const options of [{}, { cache: false }, { strategy: 'least-loaded' }] as Partial<PlainRegistryOptions>[]) {
  test(`concurrency: 200 first touches by 8 registries in 4 processes make one binding and get equal answers, with ${JSON.stringify(options)}`, async t => {
    const scene = setScene(t)
    const memberIds = Array.from({ length: 10 }, (_, i) => `pod-${i}`)
    for (const memberId of memberIds) await scene.liveMember(memberId, { memberIndex: true })
    const race = await startRace(t, scene, options)

    for (let round = 0; round < 5; round++) {
      const answers = await race(`d${round}`)

      const [owner, ...others] = await scene.pods(`d${round}`)
      assert.deepEqual(others, [])
      assert.equal(answers.length, 200)
      for (const answer of answers) assert.deepEqual(answer, { address: `http://${owner}.test:3000`, memberId: owner, reassigned: false })
      assert.deepEqual(await owners(scene, `d${round}`, memberIds), [owner])
    }
  })

  test(`concurrency: 200 calls by 8 registries in 4 processes reassign an orphan once and get equal answers, with ${JSON.stringify(options)}`, async t => {
    const scene = setScene(t)
    const memberIds = Array.from({ length: 10 }, (_, i) => `pod-${i}`)
    for (const memberId of memberIds) await scene.liveMember(memberId, { memberIndex: true })
    const race = await startRace(t, scene, { ...options, cache: false })
    await race('d')

    for (let round = 0; round < 5; round++) {
      const [dead] = await scene.pods('d')
      await scene.raw.del(scene.key('member', dead as string))
      const answers = await race('d')

      const [owner, ...others] = await scene.pods('d')
      assert.deepEqual(others, [])
      assert.notEqual(owner, dead)
      assert.equal(answers.length, 200)
      for (const answer of answers) assert.deepEqual([answer?.memberId, answer?.address], [owner, `http://${owner}.test:3000`])
      assert.deepEqual(answers.filter(answer => answer?.reassigned), [
        { address: `http://${owner}.test:3000`, memberId: owner, reassigned: true, previous: [dead] }
      ])
      assert.deepEqual(await owners(scene, 'd', memberIds), [owner])
    }
  })
}

test('concurrency: pods drain and die during the race; a live owner is never replaced, and no call goes without an answer', async t => {
  const scene = setScene(t)
  const race = await startRace(t, scene, { cache: false })
  let replacements = 0

  for (let round = 0; round < 10; round++) {
    const id = `d${round}`
    const name = (kind: string): string[] => Array.from({ length: 3 }, (_, i) => `${kind}-${round}-${i}`)
    const mortal = name('mortal')
    const leaving = name('leaving')
    const drained = name('drained')
    const members = await Promise.all([...mortal, ...leaving, ...drained, `steady-${round}`].map(memberId => scene.liveMember(memberId, { memberIndex: true })))
    await Promise.all(members.filter(member => drained.includes(member.memberId)).map(member => member.setDraining(true)))
    if (round % 2 === 1) await scene.raw.sadd(scene.key('destination', id), 'dead-1')

    const [answers] = await Promise.all([
      Promise.all([race(id), race(id), race(id)]).then(each => each.flat()),
      (async () => {
        for (let i = 0; i < 3; i++) {
          await members.find(member => member.memberId === leaving[i])?.setDraining(true)
          // Whoever owns it now, if mortal, else the next one.
          const owner = (await scene.pods(id))[0] ?? ''
          const victim = mortal.includes(owner) ? owner : mortal[i] as string
          await scene.raw.del(scene.key('member', victim))
        }
      })()
    ])

    const [owner, ...others] = await scene.pods(id)
    assert.deepEqual(others, [])
    assert.equal(answers.filter(answer => answer === null).length, 0, 'there was a steady pod all the time')
    const answered = new Set(answers.map(answer => answer?.memberId ?? ''))
    for (const memberId of answered) {
      assert.ok(!drained.includes(memberId), 'a pod that drained before was bound')
      // Only the last owner, and owners that died, may have answered.
      assert.ok(memberId === owner || mortal.includes(memberId), `${memberId} lost ${id} to ${owner} alive`)
    }
    const told = answers.filter(answer => answer?.reassigned)
    const firstClaims = round % 2 === 1 ? 0 : 1
    assert.equal(told.length, answered.size - firstClaims, 'each replacement was told once')
    replacements += told.length
    for (const { memberId } of members) await scene.raw.multi().srem(scene.key('members'), memberId).del(scene.key('member', memberId)).exec()
  }
  assert.ok(replacements >= 5)
})

test('concurrency: 50 callers race while the pods come and go; one binding results as soon as one stays', async t => {
  const scene = setScene(t)
  const registries = Array.from({ length: 5 }, () => scene.registry({ cache: false }))
  await scene.raw.sadd(scene.key('destination', 'd'), 'dead-1')
  const pending = registries.flatMap(registry => Array.from({ length: 10 }, () => registry.resolveDestination('d', both)))
  assert.deepEqual([...new Set(await Promise.all(pending))], [null])

  const calls = registries.flatMap(registry => Array.from({ length: 10 }, async () => {
    let answer: ResolvedDestination | null = null
    await until(async () => (answer = await registry.resolveDestination('d', both)) !== null, 'a pod is there')
    return (answer as ResolvedDestination | null)?.memberId
  }))
  await scene.liveMember('pod-1')

  assert.deepEqual([...new Set(await Promise.all(calls))], ['pod-1'])
  assert.deepEqual(await scene.pods('d'), ['pod-1'])
})
