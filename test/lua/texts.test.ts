import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { startOwnStore } from '../support/own-store.ts'
import { byRegistry, heldLock, manyIds, setScriptScene, trickyIds, unranked } from '../support/script-scene.ts'

interface Script { name: string, header: string, code: string }

const folder = new URL('../../lua/', import.meta.url)
const scripts: Script[] = readdirSync(folder).map(file => {
  const lines = readFileSync(new URL(file, folder), 'utf8').split('\n')
  const headerLength = lines.findIndex(line => !line.startsWith('--'))
  const code = lines.slice(headerLength).map(line => line.replace(/(^|\s)--(?!\[).*$/, '')).join('\n')
  return { name: file.replace(/\.lua$/, ''), header: lines.slice(0, headerLength).join('\n'), code }
})

/** Words in quotes on lines that make up a reply: those compared with or handed to a command are none. */
function repliedWords ({ code }: Script): Set<string> {
  const words = new Set<string>()
  for (const line of code.split('\n')) {
    if (!/\breturn\b|\breply\b|\banswers\[|table\.insert/.test(line)) continue
    const rest = line.replace(/[~=]= '[^']*'/g, '').replace(/\bcall\((?:'[^']*'|[^'()])*\)/g, '').replace(/(and|or) '[01]'|or ''/g, '')
    for (const [, word = ''] of rest.matchAll(/'([a-z]{2,})'/g)) words.add(word)
  }
  return words
}

function headerWords ({ header }: Script): Set<string> {
  const reply = header.slice(header.indexOf('Reply'))
  return new Set([...reply.matchAll(/'([a-z]{2,})'/g)].map(([, word = '']) => word))
}

test('lua/: every file has a header with purpose, KEYS, ARGV and reply', () => {
  assert.ok(scripts.length >= 15)
  for (const { name, header } of scripts) {
    assert.match(header, new RegExp(`^-- ${name}: \\S`), name)
    assert.match(header, /^-- KEYS\[1\] {2}\S/m, name)
    assert.match(header, /^-- ARGV/m, name)
    assert.match(header, /^-- Reply/m, name)
  }
})

test('lua/: a header tells each of KEYS that the code uses, and no other', () => {
  for (const { name, header, code } of scripts) {
    const numbers = (text: string): string[] => [...new Set([...text.matchAll(/KEYS\[(\d+)\]/g)].map(([, number = '']) => number))].sort()
    // One that is there for the cluster alone has to say so.
    const unread = numbers(header.split('\n').filter(line => line.includes('; not read:')).join('\n'))
    assert.deepEqual(numbers(header), [...numbers(code), ...unread].sort(), name)
  }
})

test('lua/: a header tells each of ARGV that the code names', () => {
  for (const { name, header, code } of scripts) {
    for (const [, number] of code.matchAll(/ARGV\[(\d+)\]/g)) {
      assert.match(header, new RegExp(`^-- ARGV\\[${number}\\]`, 'm'), `${name}: ARGV[${number}]`)
    }
  }
})

test('lua/: a header names every word that the code can reply, and no other', () => {
  for (const script of scripts) {
    const replied = repliedWords(script)
    assert.deepEqual([...headerWords(script)].sort(), [...replied].sort(), script.name)
  }
  const all = new Set(scripts.flatMap(script => [...repliedWords(script)]))
  for (const word of ['bound', 'claimed', 'reassigned', 'refused', 'orphaned', 'empty', 'error', 'superseded', 'restored', 'ids', 'many', 'held', 'mismatch']) {
    assert.ok(all.has(word), `${word} is found in the code: else this test looks at nothing`)
  }
})

test('lua/: no file builds key names, runs built text, or unpacks a set of unknown size', () => {
  for (const { name, code } of scripts) {
    assert.doesNotMatch(code, /:(members?|destination|owned|lock|features|changes)\b/, name)
    assert.doesNotMatch(code, /loadstring|setfenv|\bEVAL/, name)
    for (const [call] of code.matchAll(/unpack\([^)]*\)/g)) {
      assert.ok(/first, math\.min\(first \+ \d+/.test(call) || name === 'prune-members', `${name}: ${call}`)
    }
  }
})

test('every script: text is constant, so any number of ids makes no more scripts on the server than files (G42)', async t => {
  const store = await startOwnStore(t)
  const scene = await setScriptScene(t, { url: store.url })
  for (const id of [...manyIds(60, 'id'), ...trickyIds]) {
    const { writer } = await scene.register(id, id, { load: id.length, address: `http://${id.length}` })
    await scene.claim(id, [id], { isIndexed: true })
    await scene.plain.resolve([id])
    await scene.plain.listMembers([id])
    await scene.indexed.bind(id, unranked(id, id))
    await scene.indexed.unbind(id, byRegistry(id))
    await scene.indexed.prune(id)
    await scene.plain.pruneMembers([id])
    await scene.indexed.deregisterDestination(id)
    await scene.pod.registerLock(writer, heldLock(id, id, id, id), 60_000)
    await scene.plain.resolveLock(id)
    await scene.beat(writer, { lockIds: [id] })
    await scene.pod.releaseLocks(writer, [id])
    await scene.deregister(writer)
    await scene.plain.declareFeatures({ [id]: id })
  }

  const [, count] = /number_of_cached_scripts:(\d+)/.exec(await scene.raw.info('memory')) ?? []

  assert.equal(Number(count), scripts.length, 'each file was run, and none made a second text')
})

test('every script: is found again after SCRIPT FLUSH', async t => {
  const store = await startOwnStore(t)
  const scene = await setScriptScene(t, { url: store.url })
  const { writer } = await scene.register('pod-1', 'one')
  await scene.claim('d', ['pod-1'])
  await scene.raw.script('FLUSH')

  assert.equal((await scene.beat(writer)).status, 'beat')
  const decisions = await Promise.all(manyIds(50, 'd').map(id => scene.claim(id, ['pod-1'])))
  assert.ok(decisions.every(({ status }) => status === 'claimed'))
  assert.equal((await scene.record('pod-1'))['pending'], '51', 'none was run twice')
})

test('lua/: functions that stand in several files, for want of a way to share them, say the same in each', () => {
  const texts = new Map<string, Map<string, string[]>>()
  for (const { name, code } of scripts) {
    for (const [, fn = '', text = ''] of code.matchAll(/^local function (\w+) ?(\(.*?^end$)/gms)) {
      // bind reads one member, whose key it need not be told.
      const plain = text.replaceAll('redis.call', 'call').replace('(memberKey, ', '(').replace(/\s+/g, ' ')
      const places = texts.get(fn) ?? new Map<string, string[]>()
      texts.set(fn, places.set(plain, [...places.get(plain) ?? [], name]))
    }
  }
  const shared = [...texts].filter(([, places]) => [...places.values()].flat().length > 1)
  assert.deepEqual(shared.map(([fn]) => fn).sort(), ['finite', 'plainPending'], 'or this test looks at nothing, or at what it should not')
  for (const [fn, places] of shared) assert.equal(places.size, 1, `${fn}: ${[...places.values()].map(names => names.join()).join(' differs from ')}`)
  assert.deepEqual([...texts.get('plainPending')?.values() ?? []].flat().sort(), ['bind', 'claim', 'list-members', 'resolve'])
})

test('lua/: every file asks in the same way whether a pod drains', () => {
  const asking = scripts.filter(({ code }) => code.includes("'false'"))
  assert.deepEqual(asking.map(({ name }) => name).sort(), ['bind', 'claim', 'heartbeat', 'list-members', 'resolve'])
  for (const { name, code } of asking) {
    const tests = [...code.matchAll(/([\w[\]]+) and \1 ~= '' and \1 ~= '0' and \1 ~= 'false'/g)]
    assert.equal(tests.length, code.split("'false'").length - 1, name)
  }
})
