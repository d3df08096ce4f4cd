import { usedMicroseconds } from '../cpu.ts'

interface Question {
  readonly id: number
  readonly question: string
  readonly details: unknown
}

/**
 * Answers the questions of the process that forked this one, by name; `cpu` is answered here. The end of the channel, and so of the other
 * process, whatever the cause, ends this one.
 * @param close what has to be undone first
 */
export function answerQuestions (answers: Readonly<Record<string, (details: never) => unknown>>, close: () => unknown = () => {}): void {
  const all: typeof answers = { cpu: usedMicroseconds, ...answers }
  process.on('message', (message: Question) => {
    reply(all, message).catch(() => {}) // the channel is gone, and so is who asked
  })
  process.once('disconnect', () => {
    Promise.resolve(close()).finally(() => process.exit())
  })
}

async function reply (answers: Readonly<Record<string, (details: never) => unknown>>, { id, question, details }: Question): Promise<void> {
  try {
    const answer = answers[question]
    if (answer === undefined) throw new Error(`There is no answer to ${question}`)
    process.send?.({ id, answer: await answer(details as never) })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.stack ?? error.message : String(error) })
  }
}
