import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'node:test'
import ts from 'typescript'

interface Import { from: string, isTypeOnly: boolean }
interface Module { path: string, lineCount: number, source: ts.SourceFile, imports: Import[] }

const root = fileURLToPath(new URL('../src/', import.meta.url))

/**
 * The levels of DESIGN.md section 3, lowest first: a module may import what stands on a lower line, and, unless the line says
 * otherwise, on its own. A new file has to be given its place here.
 */
const levels: { names: string[], areStrangers?: true }[] = [
  { names: ['types', 'errors', 'keys', 'diagnostics'] },
  { names: ['options', 'background-work'] },
  { names: ['store-errors'] },
  { names: ['connection'] },
  { names: ['strategies/', 'lua-script', 'reply-reader', 'load-source', 'held-locks', 'gathered-calls'] },
  { names: ['decisions'] },
  { names: ['scripts', 'member-scripts'] },
  { names: ['binding-cache', 'claim-turns', 'live-members', 'member-view', 'feature-check', 'suspects'] },
  { names: ['resolver', 'lock-keeper', 'membership'] },
  { names: ['failover/', 'ownership/', 'movement/', 'observe/'] },
  { names: ['registry', 'member'], areStrangers: true },
  { names: ['fastify/types'] },
  { names: ['fastify/refusal', 'fastify/check-options', 'fastify/exact-bodies', 'fastify/upstream', 'fastify/pod-url'] },
  { names: ['fastify/call-back', 'fastify/headers', 'fastify/pod-body', 'fastify/pod-failure', 'fastify/pod-reply', 'fastify/upgrade'] },
  { names: ['fastify/exchange'] },
  { names: ['fastify/splice'] },
  { names: ['fastify/proxy'] },
  { names: ['fastify/lookup-and-proxy', 'fastify/pick-and-register', 'fastify/lookup-and-deregister', 'fastify/lookup-lock-and-proxy'], areStrangers: true },
  { names: ['fastify/plugin'] },
  { names: ['index'] }
]

const capabilities = ['failover', 'ownership', 'movement', 'observe']
/** Files that send commands to Valkey. */
const commanders = ['connection.ts', 'lua-script.ts', 'scripts.ts']

function walk (node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  node.forEachChild(child => walk(child, visit))
}

function readModule (path: string): Module {
  const text = readFileSync(join(root, path), 'utf8')
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
  const imports: Import[] = []
  walk(source, node => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      const isTypeOnly = ts.isImportDeclaration(node) ? node.importClause?.isTypeOnly === true : node.isTypeOnly
      imports.push({ from: (node.moduleSpecifier as ts.StringLiteral).text, isTypeOnly })
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [target] = node.arguments
      imports.push({ from: target !== undefined && ts.isStringLiteral(target) ? target.text : '(computed)', isTypeOnly: false })
    } else if (ts.isImportTypeNode(node)) {
      imports.push({ from: node.argument.getText().slice(1, -1), isTypeOnly: true })
    }
  })
  return { path, lineCount: text.split('\n').length - (text.endsWith('\n') ? 1 : 0), source, imports }
}

const modules = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.ts')).sort().map(readModule)
const paths = new Set(modules.map(({ path }) => path))

/** Path below src/ of a relative import; undefined for a package. */
function resolve (path: string, { from }: Import): string | undefined {
  return from.startsWith('.') ? relative(root, join(root, dirname(path), from)) : undefined
}

function levelOf (path: string): number {
  return levels.findIndex(({ names }) => names.some(name => name.endsWith('/') ? path.startsWith(name) : path === `${name}.ts`))
}

/** Texts of the source that are no comments: literals and the fixed parts of templates. */
function texts ({ source }: Module): string[] {
  const found: string[] = []
  walk(source, node => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node)) found.push(node.text)
  })
  return found
}

test('src/: every file has its level, and imports go downwards only', () => {
  assert.ok(modules.length > 20)
  const wrong: string[] = []
  for (const { path, imports } of modules) {
    const level = levelOf(path)
    if (level === -1) wrong.push(`${path} has no level in this test`)
    for (const each of imports) {
      const target = resolve(path, each)
      if (target === undefined) continue
      if (!paths.has(target)) wrong.push(`${path} imports ${target}, which is none of src/`)
      const isUpwards = levelOf(target) > level
      const isStrange = levelOf(target) === level && levels[level]?.areStrangers === true
      if (isUpwards || isStrange) wrong.push(`${path} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('src/: a capability is seen through its index.ts alone, sees no other, and its host only through types.ts', () => {
  const wrong: string[] = []
  const folder = (path: string): string => path.split('/')[0] as string
  for (const { path, imports } of modules) {
    for (const each of imports) {
      const target = resolve(path, each)
      if (target === undefined || !capabilities.includes(folder(target)) || folder(target) === folder(path)) continue
      if (target !== `${folder(target)}/index.ts` || capabilities.includes(folder(path))) wrong.push(`${path} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('src/: no import leads back to where it came from, types included', () => {
  const state = new Map<string, 'open' | 'done'>()
  const cycles: string[] = []
  const visit = (path: string, trail: string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' > '))
      return
    }
    state.set(path, 'open')
    const { imports = [] } = modules.find(module => module.path === path) ?? {}
    for (const each of imports) {
      const target = resolve(path, each)
      if (target !== undefined) visit(target, [...trail, path])
    }
    state.set(path, 'done')
  }
  for (const { path } of modules) visit(path, [])
  assert.deepEqual(cycles, [])
})

test('src/: a file has 250 lines at most, and a name in kebab-case', () => {
  for (const { path, lineCount } of modules) {
    assert.ok(lineCount <= 250, `${path} has ${lineCount} lines`)
    assert.match(path, /^([a-z\d]+(-[a-z\d]+)*\/)*[a-z\d]+(-[a-z\d]+)*\.ts$/)
  }
})

test('src/: key and channel names are built in keys.ts alone', () => {
  const name = /:(members?|destination|owned|lock|features|changes)(:|$)/
  const found = modules.flatMap(module => texts(module).filter(text => name.test(text) && !text.startsWith('@platformatic/coordinator:')).map(text => `${module.path} ${text}`))
  assert.equal(found.filter(text => text.startsWith('keys.ts ')).length, 7)
  assert.deepEqual(found.filter(text => !text.startsWith('keys.ts ')), [])
})

test('src/: Fastify is a matter of types outside fastify/, and reply-from is named nowhere else', () => {
  for (const { path, imports } of modules) {
    if (path.startsWith('fastify/')) continue
    for (const { from, isTypeOnly } of imports) {
      assert.ok(from !== '(computed)', `${path} imports something that this test cannot see`)
      assert.ok(isTypeOnly || !/^(fastify|fastify-plugin|undici|@fastify\/.*)$/.test(from), `${path} loads ${from}`)
      assert.ok(isTypeOnly || !/^(fastify|fastify-plugin|undici|@fastify)\//.test(from), `${path} loads ${from}`)
    }
  }
})

test('src/: packages are the runtime dependencies and what Node brings', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, '../package.json'), 'utf8')) as Record<string, Record<string, string>>
  const allowed = new Set([...Object.keys(dependencies ?? {}), ...Object.keys(peerDependencies ?? {})])
  for (const { path, imports } of modules) {
    for (const each of imports) {
      assert.ok(each.from.startsWith('.') || each.from.startsWith('node:') || allowed.has(each.from), `${path} imports ${each.from}`)
    }
  }
})

test('src/: iovalkey is loaded, and commands are issued, in the listed files alone', () => {
  const calls: string[] = []
  for (const { path, imports, source } of modules) {
    assert.ok(path === 'connection.ts' || imports.every(({ from, isTypeOnly }) => from !== 'iovalkey' || isTypeOnly), `${path} loads iovalkey`)
    walk(source, node => {
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return
      const owner = node.expression.expression.getText()
      if (/(^|\.)#?(client|redis|subscriber|pipeline)\??$/i.test(owner)) calls.push(`${path} ${node.expression.name.text}`)
    })
  }
  for (const commander of commanders) assert.ok(calls.some(call => call.startsWith(`${commander} `)), `${commander} sends commands, or this test looks at nothing`)
  assert.deepEqual(calls.filter(call => !commanders.includes(call.split(' ')[0] as string)), [])
})

test('src/: there is no default export but the plugin’s, and only index.ts exports what others made', () => {
  for (const { path, source } of modules) {
    walk(source, node => {
      const isDefault = ts.isExportAssignment(node) || (ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword) === true) ||
        (ts.isExportSpecifier(node) && node.name.text === 'default')
      assert.ok(!isDefault || path === 'index.ts' || path.startsWith('fastify/'), `${path} has a default export`)
      assert.ok(!ts.isExportDeclaration(node) || node.moduleSpecifier === undefined || path.split('/').pop() === 'index.ts', `${path} exports what another file made`)
    })
  }
})

test('src/: no `any`, no `!` and no console', () => {
  for (const { path, source } of modules) {
    walk(source, node => {
      // The one `any` is the pod's JSON, whose shape only the application knows.
      const isPodJson = path === 'fastify/types.ts' && node.parent?.getText() === 'body: any'
      assert.ok((node.kind !== ts.SyntaxKind.AnyKeyword || isPodJson) && !ts.isNonNullExpression(node), `${path}: ${node.parent?.getText()}`)
      assert.ok(!ts.isIdentifier(node) || node.text !== 'console', `${path} writes to the console`)
    })
  }
})

test('strategies/: pure: no clock, no chance of their own, no I/O', () => {
  for (const { path, imports, source } of modules.filter(({ path }) => path.startsWith('strategies/'))) {
    assert.deepEqual(imports.filter(({ from }) => !from.startsWith('.')), [], path)
    assert.doesNotMatch(source.getText(), /\bMath\.random\b|\bDate\b|\bperformance\b|\bprocess\b|\blet \w+ =.*\n(?=export)/, path)
  }
})

test('index.ts: importing it loads neither Fastify nor undici nor reply-from', () => {
  // All of these packages are CommonJS: whoever loads one leaves it in that cache.
  const loader = `
    await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const { default: module } = await import('node:module')
    for (const path of Object.keys(module._cache)) console.log(path)
  `
  const output = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', loader], { encoding: 'utf8', cwd: join(root, '..') })

  const loaded = output.split('\n')
  assert.ok(loaded.some(path => path.includes('/node_modules/iovalkey/')), 'what is loaded is seen')
  assert.deepEqual(loaded.filter(path => /node_modules\/(fastify|undici|@fastify)\//.test(path)), [])
})
