import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ResponseParser, type ResponseEvents } from '../../../src/gateway/upstream/response-parser.ts';
import { textOf, type ResponseHead } from '../../../src/gateway/upstream/decide/response-head.ts';

interface RecordingSink extends ResponseEvents {
  readonly heads: ResponseHead[];
  readonly body: Buffer[];
  lasts: number;
}

function createSink(): RecordingSink {
  const sink: RecordingSink = {
    heads: [],
    body: [],
    lasts: 0,
    onHead: (head) => void sink.heads.push(head),
    onBody(bytes, last) {
      sink.body.push(Buffer.from(bytes));
      if (last) sink.lasts += 1;
    },
  };
  return sink;
}

function parse(text: string | Buffer, cuts: readonly number[] = []): { parser: ResponseParser; sink: RecordingSink; body: string } {
  const bytes = Buffer.from(text);
  const parser = new ResponseParser();
  const sink = createSink();
  let from = 0;
  for (const cut of [...cuts].map((at) => at % (bytes.length + 1)).toSorted((a, b) => a - b)) {
    parser.feed(bytes.subarray(from, cut), sink);
    from = cut;
  }
  parser.feed(bytes.subarray(from), sink);
  return { parser, sink, body: Buffer.concat(sink.body).toString('latin1') };
}

const cuts = fc.array(fc.nat({ max: 3000 }), { maxLength: 10 });
const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { maxLength: 8 });

function chunked(parts: readonly Uint8Array[], extension: string, trailer: string): Buffer {
  const framed = parts.map((part) =>
    Buffer.concat([Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n')]),
  );
  return Buffer.concat([...framed, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

describe('ResponseParser', () => {
  test('returns a chunked body in whatever pieces it arrives', () => {
    const options = fc.tuple(fc.constantFrom('', ';a=b', ' '), fc.constantFrom('', 'x-t: 1\r\n', 'a: b\r\nc: d\r\n'));
    fc.assert(
      fc.property(pieces, options, cuts, (parts, [extension, trailer], at) => {
        const head = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n');
        const { parser, sink, body } = parse(Buffer.concat([head, chunked(parts, extension, trailer)]), at);
        expect(body).toBe(Buffer.concat(parts).toString('latin1'));
        expect([parser.state, parser.keepAlive, sink.lasts]).toEqual(['done', true, 1]);
        expect(sink.heads[0]?.headers).toEqual(['X-A', 'b']);
      }),
    );
  });

  test('returns a body of known length in whatever pieces it arrives', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
        const head = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes.length}\r\n\r\n`);
        const { parser, sink, body } = parse(Buffer.concat([head, bytes]), at);
        expect(body).toBe(Buffer.from(bytes).toString('latin1'));
        expect([parser.state, parser.keepAlive, sink.lasts]).toEqual(['done', true, 1]);
      }),
    );
  });

  test('handles any bytes and never completes twice', () => {
    const lines = fc.constantFrom(
      'HTTP/1.1 200 OK\r\n',
      'content-length: 3\r\n',
      'transfer-encoding: chunked\r\n',
      '\r\n',
      'a',
      '0\r\n',
      ': x\r\n',
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((raw) => Buffer.from(raw)),
      fc.array(lines).map((parts) => Buffer.from(parts.join(''))),
    );
    fc.assert(
      fc.property(bytes, cuts, (raw, at) => {
        const { sink } = parse(raw, at);
        expect(sink.lasts).toBeLessThanOrEqual(1);
        expect(sink.heads.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 2000 },
    );
  });

  test('skips 100 and 103 before the answer', () => {
    const { sink, body } = parse(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    );
    expect([sink.heads.length, sink.heads[0]?.status, body]).toEqual([1, 200, 'ok']);
  });

  test.each([
    ['an HTTP/1.1 answer', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', true],
    ['connection: close', 'HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 0\r\n\r\n', false],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n', false],
    ['HTTP/1.0 with keep-alive', 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n', true],
    ['extra bytes', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK', false],
    ['status 204', 'HTTP/1.1 204 No Content\r\n\r\n', true],
  ])('knows whether the connection may be used again after %s', (_what, text, keepAlive) => {
    const { parser } = parse(text);
    expect([parser.state, parser.keepAlive]).toEqual(['done', keepAlive]);
  });

  test('ends a body without a length at the end of the connection, and only such a body', () => {
    const open = parse('HTTP/1.1 200 OK\r\n\r\nabc');
    expect(open.parser.end(open.sink)).toBe(true);
    expect([open.body, open.sink.lasts, open.parser.keepAlive]).toEqual(['abc', 1, false]);
    const cut = parse('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc');
    expect([cut.parser.end(cut.sink), cut.sink.lasts]).toEqual([false, 0]);
  });

  test.each([
    ['a protocol other than HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
    ['a length with a sign', 'HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['an unknown encoding', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n'],
    ['two encodings', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n'],
    ['a space before the colon', 'HTTP/1.1 200 OK\r\na : b\r\n\r\n'],
    ['a bare line feed in a value', 'HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n'],
    ['a NUL in a value', 'HTTP/1.1 200 OK\r\na: \u0000\r\n\r\n'],
    ['switching protocols', 'HTTP/1.1 101 Switching\r\n\r\n'],
    ['a chunk without size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n'],
    ['a chunk longer than its size line', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n'],
    ['a chunk line with a bare line feed', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\nab\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\na: ${'x'.repeat(70_000)}`],
    ['a chunk extension without end', `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(2000)}`],
  ])('refuses %s, cut or not', (_what, text) => {
    expect(parse(text).parser.state).toBe('broken');
    expect(parse(text, [5, 17, 30, 40, 55]).parser.state).toBe('broken');
  });

  test('finds in responses that follow each other what it finds in each alone, however much their heads have in common', () => {
    const line = fc.constantFrom(
      'Server: llama.cpp',
      'server:llama.cpp',
      'Date: Tue, 01 Dec 2026 03:16:21 GMT',
      'X-A: b',
      'X-A: c',
      'Connection: close',
    );
    const length = fc.constantFrom('Content-Length: ', 'content-length:', 'Content-Length:  ');
    const alike = fc.record({
      status: fc.constantFrom('200 OK', '200 OK', '200 OK', '404 Not Found'),
      lines: fc.array(line, { maxLength: 2 }),
      length,
      zeros: fc.constantFrom('', '', '', '0'),
      bytes: fc.constantFrom(0, 1, 9, 10, 99, 100, 1000),
      after: fc.constantFrom('', 'X-Last: 1\r\n'),
    });
    fc.assert(
      fc.property(fc.array(alike, { minLength: 4, maxLength: 12 }), fc.integer({ min: 1, max: 400 }), (responses, size) => {
        const one = new ResponseParser();
        for (const { status, lines, length: name, zeros, bytes, after } of responses) {
          const head = [`HTTP/1.1 ${status}`, ...lines, `${name}${zeros}${bytes}`].join('\r\n');
          const text = Buffer.from(`${head}\r\n${after}\r\n${'1'.repeat(bytes)}`);
          const sink = createSink();
          for (let at = 0; at < text.length; at += size) one.feed(text.subarray(at, at + size), sink);
          const alone = parse(text);
          const seen = ({ text: _text, ...rest }: ResponseHead): object => rest;
          expect(sink.heads.map(seen)).toEqual(alone.sink.heads.map(seen));
          for (const { headers, text: known } of sink.heads) expect(known ?? textOf(headers)).toEqual(textOf(headers));
          expect([Buffer.concat(sink.body).toString(), sink.lasts, one.state]).toEqual([alone.body, 1, 'done']);
          expect([one.keepAlive, one.keepAliveSeconds]).toEqual([alone.parser.keepAlive, alone.parser.keepAliveSeconds]);
          one.reset();
        }
      }),
      { numRuns: 500 },
    );
  });

  test('leaves out headers that an upstream may not set', () => {
    const { sink } = parse(
      'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nSet-Cookie: a=b\r\nX-Request-Id: 1\r\nKeep-Alive: timeout=5, max=100\r\nServer: llama.cpp\r\ncontent-length: 0\r\n\r\n',
    );
    expect(sink.heads[0]).toMatchObject({
      headers: ['Server', 'llama.cpp'],
      framing: { kind: 'length', bytes: 0 },
      keepAliveSeconds: 5,
    });
  });
});
