import assert from 'node:assert/strict'
import test from 'node:test'
import { Findings } from '../support/findings.ts'
import type { Rule } from '../support/findings.ts'
import { Landing } from '../support/landing.ts'
import { NumberLedger } from '../support/number-ledger.ts'
import type { NumberAttempt } from '../support/number-ledger.ts'
import { OwnerLedger } from '../support/owner-ledger.ts'
import type { LoggedWrite } from '../support/storage.ts'
import { ValueLedger } from '../support/value-ledger.ts'

// Each rule of the ledgers with a history that breaks it and one that nearly does. Moments are in ms; a write lands within 100.

function openBooks () {
  const clock = { now: 0 }
  const findings = new Findings()
  const landing = new Landing(100, () => clock.now)
  const numbers = new NumberLedger(findings, landing)
  const values = new ValueLedger(findings, landing)
  const owners = new OwnerLedger(findings, () => clock.now)
  const rules = (): Rule[] => findings.all.map(({ rule }) => rule)
  /** A write of d that was acknowledged with this number, sent at this moment. */
  const ack = (number: number, sentAt = 0): NumberAttempt => {
    const attempt = numbers.begin('d')
    attempt.acknowledged(number, sentAt)
    return attempt
  }
  const lose = (givenUpAt = 0): NumberAttempt => {
    const attempt = numbers.begin('d')
    attempt.uncertain(givenUpAt)
    return attempt
  }
  const refuse = (): NumberAttempt => {
    const attempt = numbers.begin('d')
    attempt.refused()
    return attempt
  }
  const put = (value: string | null, sentAt = 0): void => values.begin('k', value).acknowledged(sentAt)
  const losePut = (value: string | null, givenUpAt = 0): void => values.begin('k', value).uncertain(givenUpAt)
  const saw = (memberId: string, incarnation = memberId, sentAt = clock.now, endedAt = clock.now): void => owners.saw('d', { memberId, incarnation, sentAt, endedAt })
  return { clock, findings, landing, numbers, values, owners, rules, ack, lose, refuse, put, losePut, saw }
}

type Books = ReturnType<typeof openBooks>

function check (title: string, expected: Rule[], history: (books: Books) => void): void {
  test(`ledger: ${title}`, () => {
    const books = openBooks()
    history(books)
    assert.deepEqual(books.rules(), expected, String(books.findings))
  })
}

function logged (attempt: NumberAttempt, number: number, memberId = 'a'): LoggedWrite {
  return { destinationId: 'd', number, writeId: attempt.writeId, memberId }
}

function stored ({ numbers }: Books, log: LoggedWrite[], last: LoggedWrite | undefined = log.at(-1)): void {
  numbers.compare(last === undefined ? [] : [last], log)
}

check('consecutive numbers are right', [], ({ ack }) => { ack(1); ack(2); ack(3) })
check('a number that two writes got is a finding', ['repeated'], ({ ack }) => { ack(1); ack(2); ack(2); ack(3) })
check('a number below one that was given out is a finding', ['repeated'], ({ ack }) => { ack(1); ack(2); ack(3); ack(1); ack(2) })
check('a number left out is a finding', ['skipped'], ({ ack }) => { ack(1); ack(3); ack(4) })
check('a number left out is right after a write without an answer', [], ({ ack, lose }) => { ack(1); lose(); ack(3) })
check('a write without an answer need not have been carried out', [], ({ ack, lose }) => { ack(1); lose(); ack(2); ack(3) })
check('two numbers left out after one write without an answer is a finding', ['skipped'], ({ ack, lose }) => { ack(1); lose(); ack(4) })
check('one write without an answer takes one number in all', ['skipped'], ({ ack, lose }) => { ack(1); lose(); ack(3); ack(5) })
check('a write that was refused takes no number', ['skipped'], ({ ack, refuse }) => { ack(1); refuse(); ack(3) })
check('a write without an answer may be carried out after a later one', [], ({ ack, lose }) => { ack(1); lose(0); ack(2, 99); ack(4, 150) })
check('it may not once a write was acknowledged that was sent after its landing', ['skipped'], ({ ack, lose }) => { ack(1); lose(0); ack(2, 101); ack(4, 150) })
check('the later of two writes without an answer stays open', [], ({ ack, lose }) => { lose(0); lose(50); ack(2, 120); ack(4, 140) })
check('and takes one number only', ['skipped'], ({ ack, lose }) => { lose(0); lose(50); ack(2, 120); ack(5, 140) })
check('what may lie in a paused pod stays open until that goes on, and its landing after', [], ({ clock, landing, ack, lose }) => {
  const release = landing.hold()
  lose(10)
  ack(1, 5000)
  clock.now = 6000
  release()
  ack(2, 6099)
  ack(4, 6200)
})
check('then it is closed', ['skipped'], ({ clock, landing, ack, lose }) => {
  const release = landing.hold()
  lose(10)
  clock.now = 6000
  release()
  ack(1, 6101)
  ack(3, 6200)
})
check('a pause that began after the landing holds nothing of before', ['skipped'], ({ clock, landing, ack, lose }) => {
  lose(0)
  clock.now = 101
  landing.hold()
  ack(1, 150)
  ack(3, 160)
})
check('a read of the last number is right', [], ({ ack, numbers }) => { numbers.read('d', 0); ack(1); numbers.read('d', 1); ack(2) })
check('a read below it is a finding', ['went-back'], ({ ack, numbers }) => { ack(1); ack(2); numbers.read('d', 1) })
check('a read above it is a finding', ['skipped'], ({ ack, numbers }) => { ack(1); numbers.read('d', 2) })
check('a read above it is right after a write without an answer, which is then spent', ['skipped'], ({ ack, lose, numbers }) => { ack(1); lose(); numbers.read('d', 2); ack(3); ack(5) })
check('destinations count on their own', [], ({ ack, numbers }) => { ack(1); numbers.begin('e').acknowledged(1, 0); numbers.read('e', 1); ack(2) })

check('a log with every number once is right, without an answer or not', [], books => {
  const [first, second, third] = [books.ack(1), books.lose(), books.ack(3)]
  books.lose()
  books.refuse()
  stored(books, [logged(first, 1), logged(second, 2), logged(third, 3)])
})
check('a number stored for two writes is a finding', ['repeated'], books => {
  const [first, second] = [books.ack(1), books.lose()]
  stored(books, [logged(first, 1), logged(second, 1)])
})
check('an acknowledged write that is not in the log is a finding', ['lost', 'lost'], books => {
  const first = books.ack(1)
  books.ack(2)
  stored(books, [logged(first, 1)])
})
check('an acknowledged write with another number in the log is a finding', ['lost', 'lost'], books => {
  const [first, second] = [books.ack(1), books.ack(2)]
  stored(books, [logged(second, 1), logged(first, 2)])
})
check('a number that is missing from the log is a finding', ['skipped'], books => {
  books.lose()
  stored(books, [logged(books.ack(2), 2)])
})
check('a write stored twice is a finding', ['executed-twice'], books => {
  const [first, second] = [books.ack(1), books.lose()]
  stored(books, [logged(first, 1), logged(second, 2), logged(second, 3)])
})
check('a write that was refused and is stored is a finding', ['executed-though-refused'], books => {
  const [first, second] = [books.ack(1), books.refuse()]
  stored(books, [logged(first, 1), logged(second, 2)])
})
check('a write that nobody sent is a finding', ['foreign'], books => {
  stored(books, [logged(books.ack(1), 1), { destinationId: 'd', number: 2, writeId: 'somebody', memberId: 'a' }])
})
check('a write of one destination stored for another is a finding', ['foreign'], books => {
  const attempt = books.numbers.begin('e')
  attempt.uncertain(0)
  stored(books, [logged(books.ack(1), 1), logged(attempt, 2)])
})
check('a stored number below the log, as an old pod leaves it, is a finding', ['lost', 'lost'], books => {
  const [first, second] = [books.ack(1), books.ack(2)]
  stored(books, [logged(first, 1), logged(second, 2)], logged(first, 1))
})
check('a stored number of another write than the log says is a finding', ['foreign'], books => {
  const [first, second] = [books.ack(1), books.ack(2)]
  stored(books, [logged(first, 1), logged(second, 2)], logged(first, 2))
})

check('the last acknowledged value is right, and before the first none', [], ({ put, values }) => { values.read('k', null); put('a'); put('b'); values.read('k', 'b') })
check('an older value is a finding', ['lost'], ({ put, values }) => { put('a'); put('b'); values.read('k', 'a') })
check('no value where one was acknowledged is a finding', ['lost'], ({ put, values }) => { put('a'); values.read('k', null) })
check('a value that nobody wrote is a finding', ['foreign'], ({ put, values }) => { put('a'); values.read('k', 'x') })
check('a value that was refused is a finding', ['foreign'], ({ put, values }) => { put('a'); values.begin('k', 'b').refused(); values.read('k', 'b') })
check('a deleted value is gone', ['lost'], ({ put, values }) => { put('a'); put(null); values.read('k', null); values.read('k', 'a') })
check('after a write without an answer both values are right', [], ({ put, losePut, values }) => { put('a'); losePut('b'); values.read('k', 'a'); values.read('k', 'b') })
check('an older one is not', ['lost'], ({ put, losePut, values }) => { put('a'); put('b'); losePut('c'); values.read('k', 'a') })
check('once its value was read it was carried out, and the one before is gone', ['lost'], ({ put, losePut, values }) => { put('a'); losePut('b'); values.read('k', 'b'); values.read('k', 'a') })
check('a write without an answer may be carried out after an acknowledged one', [], ({ put, losePut, values }) => { losePut('a', 0); put('b', 99); values.read('k', 'b'); values.read('k', 'a') })
check('it may not once a write was acknowledged that was sent after its landing', ['lost'], ({ put, losePut, values }) => { put('0'); losePut('a', 0); put('b', 101); values.read('k', '0') })
check('nor then is its own value right', ['foreign'], ({ put, losePut, values }) => { losePut('a', 0); put('b', 101); values.read('k', 'a') })
check('a delete without an answer leaves two right answers', [], ({ put, losePut, values }) => { put('a'); losePut(null); values.read('k', 'a'); values.read('k', null) })
check('keys stand on their own', [], ({ put, values }) => { put('a'); values.begin('l', 'b').acknowledged(0); values.read('k', 'a'); values.read('l', 'b') })

test('ledger: what is uncertain is counted, until it is settled', () => {
  const { put, losePut, values, ack, lose, numbers } = openBooks()
  losePut('a', 0)
  lose(0)
  assert.deepEqual([values.uncertain, numbers.uncertain], [['k'], ['d']])
  put('b', 99)
  ack(1, 99)
  assert.deepEqual([values.uncertain, numbers.uncertain], [['k'], ['d']])
  put('c', 101)
  ack(2, 101)
  assert.deepEqual([values.uncertain, numbers.uncertain], [[], []])
  assert.deepEqual([values.uncertainWrites, numbers.uncertainWrites], [1, 1])
})

check('a destination that moves on is right', [], ({ owners, saw }) => { saw('a'); saw('a'); saw('b'); saw('c'); owners.judge() })
check('a destination that comes back is a finding', ['interleaving'], ({ owners, saw }) => { saw('a'); saw('b'); saw('a'); saw('a'); owners.judge() })
check('each time', ['interleaving', 'interleaving'], ({ owners, saw }) => { saw('a'); saw('b'); saw('a'); saw('b'); owners.judge() })
check('also by way of a third pod', ['interleaving'], ({ owners, saw }) => { saw('a'); saw('b'); saw('c'); saw('a'); owners.judge() })
check('in a stated window it may come back', [], ({ clock, owners, saw }) => {
  saw('a')
  clock.now = 10
  const close = owners.openWindow()
  saw('b')
  saw('a')
  saw('b')
  clock.now = 20
  close()
  clock.now = 21
  saw('a')
  owners.judge()
})
check('after the window it may not', ['interleaving'], ({ clock, owners, saw }) => {
  const close = owners.openWindow()
  saw('a')
  saw('b')
  close()
  clock.now = 1
  saw('a')
  saw('b')
  owners.judge()
})
check('an answer to a request that was under way in the window belongs to it', [], ({ clock, owners, saw }) => {
  saw('a')
  saw('b')
  clock.now = 10
  owners.openWindow()()
  clock.now = 20
  saw('a', 'a', 9, 20)
  owners.judge()
})
check('one that was asked for after it does not', ['interleaving'], ({ clock, owners, saw }) => {
  saw('a')
  saw('b')
  clock.now = 10
  owners.openWindow()()
  clock.now = 20
  saw('a', 'a', 11, 20)
  owners.judge()
})
check('a window of other destinations does not count', ['interleaving'], ({ owners, saw }) => {
  owners.openWindow(['e'])
  saw('a')
  saw('b')
  saw('a')
  owners.judge()
})
check('a pod that starts anew is another process from then on', [], ({ clock, saw }) => { saw('a', 'a1'); clock.now = 5; saw('a', 'a2'); clock.now = 6; saw('a', 'a2') })
check('its earlier process answers no more', ['incarnation'], ({ clock, saw }) => { saw('a', 'a1'); clock.now = 5; saw('a', 'a2'); clock.now = 6; saw('a', 'a1') })
check('but to what was asked before the later one was there', [], ({ clock, saw }) => { saw('a', 'a1'); clock.now = 5; saw('a', 'a2'); clock.now = 6; saw('a', 'a1', 4, 6) })
