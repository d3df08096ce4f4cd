import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const sources = fileURLToPath(new URL('./stateful/', import.meta.url))
// Below node_modules, so that packages resolve as from the repository: the library to its dist/, as in an application.
const cache = fileURLToPath(new URL('../../node_modules/.cache/coordinator-e2e/', import.meta.url))

/**
 * Compiles e2e/support/stateful/ and returns the folder of the results. A scenario starts many processes on few cores: compiled, a pod is
 * ready after 0.17 s and a coordinator after 0.4 s of CPU, under tsx it is 0.35 s and 0.9 s.
 */
export async function compileStateful (): Promise<string> {
  const files = readdirSync(sources).filter(name => name.endsWith('.ts')).sort()
  const texts = files.map(name => readFileSync(join(sources, name), 'utf8'))
  const hash = createHash('sha256').update(JSON.stringify([files, texts])).digest('hex').slice(0, 16)
  const folder = join(cache, hash)
  if (existsSync(folder)) return folder

  const { default: ts } = await import('typescript')
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true, rewriteRelativeImportExtensions: true }
  // Another test file may do the same at the same time: whoever renames last finds the folder there, with the same content.
  const draft = join(cache, `${hash}.${process.pid}`)
  mkdirSync(draft, { recursive: true })
  writeFileSync(join(draft, 'package.json'), '{ "type": "module" }\n')
  for (const [i, name] of files.entries()) {
    writeFileSync(join(draft, name.replace(/\.ts$/, '.js')), ts.transpileModule(texts[i] ?? '', { compilerOptions }).outputText)
  }
  try {
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}
