import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomBytes } from 'node:crypto'
import { answerQuestions } from './answer.ts'

/** The pod of the HTTP rows: reads what it is sent and answers at once, with an id that is new each time. */
const run = randomBytes(6).toString('hex')
let created = 0

const pod = createServer((request, response) => {
  request.resume().once('end', () => {
    const body = `{"id":"created-${run}-${created++}","status":"running"}`
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})
// The connections of a coordinator that is between two rows stay.
pod.keepAliveTimeout = 600_000

answerQuestions({
  async listen () {
    await new Promise<void>(resolve => pod.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(pod.address() as AddressInfo).port}`
  }
}, () => pod.close())
