/** What a capture keeps: no credential, and bodies as they were. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  captureText,
  redactHeaders,
  withoutFrames,
  type CapturedExchange,
  type HeaderPairs,
} from '../../../../src/gateway/capture/decide/capture-text.ts';

const HIDDEN = '(hidden)';

describe('headers', () => {
  test.each([
    ['content-type', 'application/json', 'application/json'],
    ['User-Agent', 'OpenAI/Python 2.1.0', 'OpenAI/Python 2.1.0'],
    ['user-agent', 'task-runner/1.0', 'task-runner/1.0'],
    ['x-stainless-lang', 'js', 'js'],
    ['x-request-id', 'req_0123456789abcdef0123456789abcdef', 'req_0123456789abcdef0123456789abcdef'],
    ['X-Svc-Slot', 'primary', 'primary'],
    ['x-ratelimit-remaining-tokens', '12', '12'],
    ['Authorization', 'Bearer svc_1a2b3c4d_secret', HIDDEN],
    ['authorization', 'Basic YTpi', HIDDEN],
    ['Proxy-Authorization', 'Digest a', HIDDEN],
    ['Cookie', 'a=b', HIDDEN],
    ['Set-Cookie', 'a=b', HIDDEN],
    ['api-key', 'x', HIDDEN],
    ['x-api-key', 'x', HIDDEN],
    ['x-forwarded-email', 'anna@example.com', HIDDEN],
    ['x-svc-proxy-secret', 'x', HIDDEN],
    ['x-session-id', 'x', HIDDEN],
    ['x-stainless-token', 'x', HIDDEN],
    ['x-some-header', 'nobody knows it', HIDDEN],
    ['user-agent', 'curl svc_1a2b3c4d_secret', HIDDEN],
    ['x-request-id', 'sk-proj-abcdefgh', HIDDEN],
    ['accept', 'Bearer abc', HIDDEN],
    ['x-client-request-id', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln', HIDDEN],
  ])('%s: %s is shown as %s', (name, value, shown) => {
    expect(redactHeaders([[name, value]])).toEqual([[name, shown]]);
  });

  test('a name that is a token is hidden, too', () => {
    expect(redactHeaders([['svc_1a2b3c4d_secret', '']])).toEqual([[HIDDEN, HIDDEN]]);
  });

  test('a credential that is repeated in a harmless header is hidden there', () => {
    const secret = 'Zp4cVx81kQ0Tt7LmN2sYb9';
    const headers: HeaderPairs = [
      ['x-gateway-auth', `scheme ${secret}`],
      ['user-agent', `agent/1 (${secret})`],
      ['accept', 'application/json'],
    ];
    expect(redactHeaders(headers)).toEqual([
      ['x-gateway-auth', HIDDEN],
      ['user-agent', HIDDEN],
      ['accept', 'application/json'],
    ]);
  });

  test('no token gets through, whatever header has it', () => {
    const letters = fc.string({
      unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_'.split('')),
      minLength: 24,
      maxLength: 60,
    });
    const token = fc.oneof(
      letters,
      letters.map((text) => `svc_${text}`),
      letters.map((text) => `sk-${text}`),
    );
    const credential = fc.constantFrom(
      'authorization',
      'Cookie',
      'x-api-key',
      'API-Key',
      'x-auth-token',
      'x-amz-security-token',
      'x-new-header',
    );
    const harmless = fc.constantFrom('user-agent', 'Accept', 'x-request-id', 'content-type', 'x-stainless-os', 'host');
    const around = fc.constantFrom('', ' ', 'Bearer ', 'token=', 'a; k=', '"');
    fc.assert(
      fc.property(token, credential, fc.array(fc.tuple(harmless, around)), around, (secret, name, others, before) => {
        const headers: HeaderPairs = [[name, `${before}${secret}`], ...others.map(([other, text]) => [other, `${text}${secret}`] as const)];
        expect(JSON.stringify(redactHeaders(headers))).not.toContain(secret);
        const known = secret.startsWith('svc_') || secret.startsWith('sk-');
        if (known) expect(JSON.stringify(redactHeaders(headers.slice(1)))).not.toContain(secret);
      }),
    );
  });
});

const body = (bytes: Buffer | string, isCut = false) => ({ bytes: Buffer.from(bytes), isCut });
const FINISHED = { slot: undefined, route: '/v1/chat/completions', status: 200, seconds: 0.5 };
const textOf = (more: Partial<CapturedExchange> = {}): Record<string, unknown> & { request: object; answer: object } =>
  JSON.parse(
    captureText({
      finished: FINISHED,
      startedAt: Date.UTC(2026, 0, 1),
      firstByteMs: undefined,
      request: { headers: [], body: body('') },
      answer: { status: undefined, headers: [], body: body('') },
      ...more,
    }),
  );

describe('bodies', () => {
  test.each([
    ['text', body('Grüße'), { body: 'Grüße', is_cut: false }],
    ['a mark at the beginning', body('\uFEFFa'), { body: '\uFEFFa', is_cut: false }],
    ['bytes that are no text', body(Buffer.from([0xff, 0x00])), { body_base64: '/wA=', is_cut: false }],
    ['a text that is cut within a letter', body(Buffer.from('aü').subarray(0, 2), true), { body: 'a', is_cut: true }],
    ['a letter that is missing at the end', body(Buffer.from('aü').subarray(0, 2)), { body_base64: 'YcM=', is_cut: false }],
  ])('%s', (_what, kept, expected) => {
    expect(textOf({ request: { headers: [], body: kept } }).request).toEqual({ headers: [], ...expected });
  });

  test('an answer in HTTP chunks is kept without them; a length says that there are none', () => {
    const chunked = { status: 200, headers: [['Transfer-Encoding', 'chunked']], body: body('3\r\nabc\r\n0\r\n\r\n') } as const;
    expect(textOf({ answer: chunked }).answer).toMatchObject({ body: 'abc' });
    const plain = { status: 200, headers: [['content-length', '3']], body: body('3\r\n') } as const;
    expect(textOf({ answer: plain }).answer).toMatchObject({ body: '3\r\n' });
  });

  test('chunks that are cut anywhere yield the beginning of what they contain', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 })), fc.nat(), (pieces, cut) => {
        const framed = Buffer.concat(
          pieces.flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
        );
        const whole = Buffer.concat(pieces);
        const at = framed.length === 0 ? 0 : cut % framed.length;
        const part = withoutFrames(framed.subarray(0, at));
        expect(whole.subarray(0, part.length).equals(part)).toBe(true);
        expect(withoutFrames(Buffer.concat([framed, Buffer.from('0\r\n\r\n')])).equals(whole)).toBe(true);
      }),
    );
  });
});
