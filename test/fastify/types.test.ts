import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import test from 'node:test'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))
const file = fileURLToPath(new URL('support/typed-usage.ts', new URL('../', import.meta.url)))

test('types: code as users write it compiles, and each line that must not is an error', () => {
  const config = ts.getParsedCommandLineOfConfigFile(`${root}tsconfig.json`, {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: diagnostic => { throw new Error(String(diagnostic.messageText)) } })
  const program = ts.createProgram([file], { ...config?.options, noEmit: true })
  const source = program.getSourceFile(file)
  const problems = ts.getPreEmitDiagnostics(program, source).map(({ messageText, start }) => {
    const line = source === undefined || start === undefined ? 0 : source.getLineAndCharacterOfPosition(start).line + 1
    return `${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
  assert.deepEqual(problems, [])
  assert.ok((source?.text.match(/@ts-expect-error/g)?.length ?? 0) >= 15, 'it holds lines that must be errors')
})
