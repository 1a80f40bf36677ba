import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  keepRequest,
  rescanRequest,
  scanRequest,
  type HandOverReason,
  type ScannedRequest,
  type ScanRules,
} from '../../../../src/turbo/fast-path/decide/scan-request.ts';

const RULES = { headerLimit: 16 * 1024, serves: (path: string) => path === '/v1/chat/completions' };
const scan = (text: string, rules: ScanRules = RULES): ReturnType<typeof scanRequest> => scanRequest(Buffer.from(text, 'latin1'), rules);

const FIRST = 'POST /v1/chat/completions HTTP/1.1';
const HOST = 'Host: localhost:8080';
const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
const withHeaders = (...lines: readonly string[]): string => head(FIRST, HOST, ...lines);

describe('a request of the ordinary form', () => {
  test('is read with the headers as Node gives them', () => {
    const text = withHeaders('Content-Type: application/json', 'X-Two:2  words', 'content-length: 2');
    expect(scan(`${text}{}`)).toEqual({
      kind: 'request',
      url: '/v1/chat/completions',
      rawHeaders: ['Host', 'localhost:8080', 'Content-Type', 'application/json', 'X-Two', '2  words', 'content-length', '2'],
      headBytes: text.length,
      contentLength: '2',
      keepAlive: true,
    });
  });

  test.each([
    ['without a body', withHeaders(), { contentLength: undefined }],
    ['with an empty body', withHeaders('Content-Length: 0'), { contentLength: '0' }],
    ['whose body has not arrived', withHeaders('Content-Length: 99'), { contentLength: '99' }],
    ['with a query', head('POST /v1/chat/completions?beta=true&a=%20 HTTP/1.1', HOST), { url: '/v1/chat/completions?beta=true&a=%20' }],
    ['that keeps the connection', withHeaders('Connection: Keep-Alive'), { keepAlive: true }],
    ['that ends the connection', withHeaders('connection: close'), { keepAlive: false }],
    ['of a page', withHeaders('Origin: https://chat.example.com', 'Sec-Fetch-Mode: cors'), { keepAlive: true }],
    ['that is followed by another', `${withHeaders('Content-Length: 2')}{}POST`, { contentLength: '2' }],
    ['without a body that is followed by another', `${withHeaders()}POST`, { contentLength: undefined }],
    ['with two credentials', withHeaders('Authorization: Bearer a', 'authorization: Bearer b'), { contentLength: undefined }],
    ['with 64 headers', withHeaders(...Array.from({ length: 63 }, (_, index) => `x-${index}: 1`)), { keepAlive: true }],
  ])('%s is read', (_name, text, expected) => {
    expect(scan(text)).toMatchObject({ kind: 'request', ...expected });
  });
});

describe('a request that Node is to judge', () => {
  const CASES: readonly (readonly [string, HandOverReason, string])[] = [
    ['another method', 'target', head('GET /v1/chat/completions HTTP/1.1', HOST)],
    ['a method in small letters', 'target', head('post /v1/chat/completions HTTP/1.1', HOST)],
    ['an empty line before the request', 'target', `\r\n${withHeaders()}`],
    ['an absolute target', 'target', head('POST http://localhost/v1/chat/completions HTTP/1.1', HOST)],
    ['another path', 'target', head('POST /api/slots HTTP/1.1', HOST)],
    ['a path with a slash at its end', 'target', head('POST /v1/chat/completions/ HTTP/1.1', HOST)],
    ['an encoded path', 'grammar', head('POST /v1/chat%2Fcompletions HTTP/1.1', HOST)],
    ['a fragment', 'grammar', head('POST /v1/chat/completions#a HTTP/1.1', HOST)],
    ['a byte above 127 in the target', 'grammar', head('POST /v1/chat/completions?\xe9 HTTP/1.1', HOST)],
    ['two blanks before the version', 'grammar', head('POST /v1/chat/completions  HTTP/1.1', HOST)],
    ['HTTP/1.0', 'grammar', head('POST /v1/chat/completions HTTP/1.0', HOST)],
    ['HTTP/2.0', 'grammar', head('POST /v1/chat/completions HTTP/2.0', HOST)],
    ['no header', 'grammar', head(FIRST)],
    ['no host', 'host', head(FIRST, 'Accept: */*')],
    ['an empty host', 'grammar', head(FIRST, 'Host:')],
    ['two hosts', 'repeated', withHeaders('host: localhost:8080')],
    ['two equal lengths', 'repeated', withHeaders('Content-Length: 2', 'content-length: 2')],
    ['two connections', 'repeated', withHeaders('Connection: close', 'connection: keep-alive')],
    ['two hosts with others between them', 'repeated', withHeaders('Accept: a/b', 'HOST: localhost:8080')],
    ['a folded header', 'grammar', withHeaders('X-A: 1\r\n 2')],
    ['a folded header with a tab', 'grammar', withHeaders('X-A: 1\r\n\t2')],
    ['a blank before the colon', 'grammar', withHeaders('Content-Length : 2')],
    ['a blank before the name', 'grammar', head(FIRST, ' Host: a')],
    ['a name with other characters', 'grammar', withHeaders('X.A: 1')],
    ['an empty name', 'grammar', withHeaders(': 1')],
    ['an empty value', 'grammar', withHeaders('X-A: ')],
    ['a line without a colon', 'grammar', withHeaders('X-A')],
    ['two blanks before a value', 'grammar', withHeaders('X-A:  1')],
    ['a blank after a value', 'grammar', withHeaders('X-A: 1 ')],
    ['a tab in a value', 'grammar', withHeaders('X-A: 1\t2')],
    ['a NUL in a value', 'grammar', withHeaders('X-A: 1\x002')],
    ['a byte above 127 in a value', 'grammar', withHeaders('X-A: caf\xe9')],
    ['a bare line feed', 'grammar', withHeaders('X-A: 1\nX-B: 2')],
    ['a bare carriage return', 'grammar', withHeaders('X-A: 1\rX-B: 2')],
    ['a chunked body', 'header', withHeaders('Transfer-Encoding: chunked')],
    ['a length and chunks', 'header', withHeaders('Content-Length: 2', 'Transfer-Encoding: chunked')],
    ['an expectation', 'header', withHeaders('Expect: 100-continue')],
    ['an upgrade', 'header', withHeaders('Upgrade: websocket', 'Connection: Upgrade')],
    ['a connection with names', 'header', withHeaders('Connection: keep-alive, X-A')],
    ['the connection of a proxy', 'header', withHeaders('Proxy-Connection: close')],
    ['trailers', 'header', withHeaders('Trailer: X-A')],
    ['a length with a sign', 'length', withHeaders('Content-Length: +2')],
    ['a negative length', 'length', withHeaders('Content-Length: -2')],
    ['a length with a zero in front', 'length', withHeaders('Content-Length: 02')],
    ['a list of lengths', 'length', withHeaders('Content-Length: 2, 2')],
    ['a length in hexadecimal', 'length', withHeaders('Content-Length: 0x2')],
    ['a length beyond all limits', 'length', withHeaders('Content-Length: 9007199254740993')],
    ['more than 8 KiB of headers', 'large', withHeaders(`X-A: ${'a'.repeat(8200)}`)],
    ['more than 8 KiB of a head that is not complete', 'large', `${FIRST}\r\nX-A: ${'a'.repeat(8200)}`],
    ['more than 64 headers', 'large', withHeaders(...Array.from({ length: 64 }, (_, index) => `x-${index}: 1`))],
  ];

  test.each(CASES)('because of %s is handed over: %s', (_name, reason, text) => {
    expect(scan(text)).toEqual({ kind: 'handOver', reason });
  });

  test.each(['Expect', 'HTTP2-Settings', 'Proxy-Connection', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'])(
    'because of %s is handed over, however it is written and wherever it is',
    (name) => {
      for (const written of [name, name.toLowerCase(), name.toUpperCase()]) {
        expect(scan(withHeaders(`${written}: a`, 'Accept: a/b'))).toEqual({ kind: 'handOver', reason: 'header' });
        expect(scan(withHeaders('Accept: a/b', `${written}: a`))).toEqual({ kind: 'handOver', reason: 'header' });
      }
    },
  );

  test('because its head is larger than the limit is handed over', () => {
    const text = withHeaders(`X-A: ${'a'.repeat(1000)}`);
    expect(scan(text, { ...RULES, headerLimit: text.length })).toMatchObject({ kind: 'request' });
    expect(scan(text, { ...RULES, headerLimit: text.length - 1 })).toEqual({ kind: 'handOver', reason: 'large' });
  });

  test('because its body is larger than this process reads is handed over', () => {
    const rules = { ...RULES, mostBodyBytes: 1000 };
    expect(scan(withHeaders('Content-Length: 1000'), rules)).toMatchObject({ kind: 'request' });
    expect(scan(withHeaders('Content-Length: 1001'), rules)).toEqual({ kind: 'handOver', reason: 'large' });
    expect(scan(withHeaders(), { ...RULES, mostBodyBytes: 0 })).toMatchObject({ kind: 'request' });
  });
});

test('a part of a head, whatever its length, is not judged before the rest has arrived', () => {
  const whole = withHeaders('Content-Type: application/json', 'Content-Length: 2');
  for (let length = 0; length < whole.length; length += 1) expect(scan(whole.slice(0, length))).toEqual({ kind: 'more' });
  expect(scan(whole)).toMatchObject({ kind: 'request' });
});

describe('a head that is kept', () => {
  const LINES = ['Content-Type: application/json', 'Authorization: Bearer svc_a', 'X-Two:2'];
  const text = (length: string, lines = LINES): string => withHeaders(...lines, `Content-Length: ${length}`, 'Accept: */*');
  const kept = keep(text('12'));
  const again = (next: string, rules: ScanRules = RULES): ScannedRequest | undefined =>
    rescanRequest(Buffer.from(next, 'latin1'), kept, rules);

  test('is the same object when it comes again, whatever follows it', () => {
    for (const rest of ['', '{}', 'a'.repeat(5000)]) expect(again(`${text('12')}${rest}`)).toBe(kept);
  });

  test.each(['0', '1', '13', '600', '999999999999'])('is what a scan finds with the length %s, and keeps its identity', (length) => {
    const next = `${text(length)}{"model":"a"}`;
    expect(again(next)).toEqual({ ...scan(next), known: kept.known });
    expect(again(next)?.known).toBe(kept.known);
  });

  test.each([
    ['another value of a header', text('12', ['Content-Type: application/json', 'Authorization: Bearer svc_b', 'X-Two:2'])],
    ['one header more', text('12', [...LINES, 'X-More: 1'])],
    ['one header fewer', text('12', LINES.slice(1))],
    ['a length that is no plain number', text('012')],
    ['a length with a sign', text('+12')],
    ['two lengths in one', text('12, 12')],
    ['a length that is missing', text('')],
    ['a length with too many digits', text('1234567890123')],
    ['a blank behind the length', text('12 ')],
    ['a part of it', text('12').slice(0, -1)],
    ['less than its length', text('12').slice(0, 60)],
    ['nothing', ''],
  ])('is scanned again where %s came', (_what, next) => {
    expect(again(next)).toBeUndefined();
  });

  test('is scanned again where a longer number makes it larger than the limit, or its body is larger than this process reads', () => {
    expect(again(text('123'), { ...RULES, headerLimit: text('12').length })).toBeUndefined();
    expect(again(text('13'), { ...RULES, headerLimit: text('12').length })).toBeDefined();
    expect(again(text('1001'), { ...RULES, mostBodyBytes: 1000 })).toBeUndefined();
    expect(again(text('1000'), { ...RULES, mostBodyBytes: 1000 })).toBeDefined();
  });

  test('is kept up to 2 KiB, so that open connections hold little', () => {
    const padded = (bytes: number): string => text('12', [`X-Pad: ${'a'.repeat(bytes - text('12', ['X-Pad: ']).length)}`]);
    const isKnown = (bytes: number): boolean => keep(padded(bytes)).known !== undefined;
    expect([padded(2048).length, isKnown(2048), isKnown(2049)]).toEqual([2048, true, false]);
  });

  test('is never kept without a length', () => {
    const next = withHeaders(...LINES);
    expect(rescanRequest(Buffer.from(next), keep(next), RULES)).toBeUndefined();
  });

  test('is read as a scan reads it, whatever byte of it is another one, is missing or is added', () => {
    const first = text('12');
    const change = fc.tuple(fc.nat({ max: first.length }), fc.nat({ max: 2 }), fc.nat({ max: 255 }));
    fc.assert(
      fc.property(change, ([at, removed, code]) => {
        const next = `${first.slice(0, at)}${String.fromCodePoint(code)}${first.slice(at + removed)}{}`;
        const found = again(next);
        if (found !== undefined) expect({ ...found, known: undefined }).toEqual({ ...scan(next), known: undefined });
      }),
      { numRuns: 20_000 },
    );
  });

  function keep(whole: string): ScannedRequest {
    const bytes = Buffer.from(whole, 'latin1');
    const scanned = scanRequest(bytes, RULES);
    if (scanned.kind !== 'request') throw new Error('It is not ordinary');
    return keepRequest(bytes, scanned);
  }
});
