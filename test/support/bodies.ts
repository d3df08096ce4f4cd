import { gzipSync } from 'node:zlib'

/** Bodies that parsing, decoding or writing again would change, by what is special about them. */
export const bodies: readonly { what: string, type: string | undefined, bytes: Buffer, encoding?: string }[] = [
  { what: 'JSON with 20-digit numbers', type: 'application/json', bytes: Buffer.from('{ "n": 12345678901234567890, "e": 1E2, "z": -0 }\r\n') },
  { what: 'JSON with repeated keys', type: 'application/json; charset=utf-8', bytes: Buffer.from('{"a":1,"a":2,"__proto__":{"x":1},"constructor":{"prototype":1}}') },
  { what: 'JSON that is broken', type: 'application/json', bytes: Buffer.from('{"a":') },
  { what: 'JSON false', type: 'application/json', bytes: Buffer.from('false') },
  { what: 'JSON 0', type: 'application/json', bytes: Buffer.from('0') },
  { what: 'JSON ""', type: 'application/json', bytes: Buffer.from('""') },
  { what: 'JSON null', type: 'application/json', bytes: Buffer.from('null') },
  { what: 'JSON with a byte order mark', type: 'application/vnd.api+json', bytes: Buffer.from('\ufeff{"a":1}') },
  { what: 'binary', type: 'application/octet-stream', bytes: Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256)) },
  { what: 'an image', type: 'image/png', bytes: Buffer.from('89504e470d0a1a0a00ff', 'hex') },
  { what: 'multipart', type: 'multipart/form-data; boundary="a b"', bytes: Buffer.from('--a b\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n\x00\xff\r\n--a b--\r\n', 'latin1') },
  { what: 'a form', type: 'application/x-www-form-urlencoded', bytes: Buffer.from('a=1&a=2&b=%20+%C3%A4&=&c') },
  { what: 'gzip', type: 'application/json', encoding: 'gzip', bytes: gzipSync('{"a":1}') },
  { what: 'ndjson', type: 'application/x-ndjson', bytes: Buffer.from('{"a":1}\n{"a":2}\n\n') },
  { what: 'text in another charset', type: 'text/plain; charset=iso-8859-1', bytes: Buffer.from('\xe4\xf6\xfc\xff', 'latin1') },
  { what: 'JSON in UTF-16', type: 'application/json; charset=utf-16le', bytes: Buffer.from('{"a":"ä"}', 'utf16le') },
  { what: 'text of a broken UTF-8', type: 'text/plain', bytes: Buffer.from('c328ff00', 'hex') },
  { what: 'no content type', type: undefined, bytes: Buffer.from('\x00any\xff', 'latin1') },
  { what: 'a content type that is none', type: 'nonsense', bytes: Buffer.from('any') },
  { what: 'an empty content type', type: '', bytes: Buffer.from('any') }
]

/** The headers of such a body. */
export function toHeaders ({ type, encoding }: { type: string | undefined, encoding?: string }): Record<string, string> {
  return { ...(type === undefined ? {} : { 'content-type': type }), ...(encoding === undefined ? {} : { 'content-encoding': encoding }) }
}
