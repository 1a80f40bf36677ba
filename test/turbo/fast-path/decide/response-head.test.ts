import { describe, expect, test } from '@jest/globals';
import { responseHead, type HeadFacts } from '../../../../src/turbo/fast-path/decide/write-head.ts';

const CONNECTION = { date: 'Tue, 24 Nov 2026 00:00:00 GMT', keepAlive: true, keepAliveSeconds: 75 };
const write = (facts: Partial<HeadFacts>, connection = CONNECTION): ReturnType<typeof responseHead> =>
  responseHead({ status: 200, reason: 'OK', own: [], headers: [], ...facts }, connection);

const KEPT = `Date: ${CONNECTION.date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n`;

test('headers are written as given, with what the connection needs after them', () => {
  const headers = ['Content-Length', '2', 'x-a', 'b'];
  expect(write({ headers })).toEqual({
    text: `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-a: b\r\n${KEPT}`,
    isLast: false,
    hasBody: true,
  });
});

describe('the connection is closed after the answer', () => {
  test.each([
    ['that says so', ['Content-Length', '2', 'CONNECTION', 'Close']],
    ['whose end nothing else shows', ['content-type', 'text/plain']],
  ])('%s', (_name, headers) => {
    expect(write({ headers }).isLast).toBe(true);
  });

  test('to a client that wants no more', () => {
    const { text, isLast } = write({ headers: ['content-length', '0'] }, { ...CONNECTION, keepAlive: false });
    expect(isLast).toBe(true);
    expect(text).toMatch(/\r\nConnection: close\r\n\r\n$/);
  });
});

test.each([
  ['Content-Length', '2'],
  ['transfer-encoding', 'chunked'],
])('"%s" shows where the body ends', (name, value) => {
  expect(write({ headers: [name, value] }).isLast).toBe(false);
});

test('an answer without a body needs no length', () => {
  expect(write({ status: 204, reason: 'No Content' })).toMatchObject({ isLast: false, hasBody: false });
});

test('the date of an upstream is kept', () => {
  expect(write({ headers: ['DATE', 'then', 'content-length', '0'] }).text).not.toContain(CONNECTION.date);
});

test('a header that was set earlier gives way to one of the same name', () => {
  const { text } = write({ own: ['X-A', 'own', 'X-B', 'own'], headers: ['x-a', 'given', 'content-length', '0'] });
  expect(text).toBe(`HTTP/1.1 200 OK\r\nX-B: own\r\nx-a: given\r\ncontent-length: 0\r\n${KEPT}`);
});

const MALFORMED: readonly (readonly [string, string])[] = [
  ['x-a', 'b\r\nx-c: d'],
  ['x-a', 'b\nx-c: d'],
  ['x-a', 'b\0'],
  ['x-a', 'snow \u2603'],
  ['x-a\r\nx-c', 'd'],
  ['x a', 'b'],
  ['', 'b'],
];
test.each(MALFORMED)('a header that is not well-formed is refused: %j with %j', (name, value) => {
  expect(() => write({ headers: { [name]: value } })).toThrow(TypeError);
  expect(() => write({ own: [name, value] })).toThrow(TypeError);
});
