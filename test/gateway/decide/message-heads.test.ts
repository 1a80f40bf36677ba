/** Which headers pass the gateway, in both directions. */
import { describe, expect, test } from '@jest/globals';
import { isCredential, parseRequestHead } from '../../../src/gateway/upstream/decide/request-head.ts';
import { parseResponseHead } from '../../../src/gateway/upstream/decide/response-head.ts';

const request = (...raw: string[]): readonly string[] =>
  parseRequestHead(raw)
    .forwarded.split('\r\n')
    .filter((line) => line !== '');

function response(...lines: string[]): readonly string[] {
  const head = parseResponseHead(['HTTP/1.1 200 OK', ...lines].join('\r\n'));
  if (typeof head === 'string') throw new Error(head);
  return head.headers;
}

describe('a credential', () => {
  test.each([
    'authorization',
    'proxy-authorization',
    'cookie',
    'api-key',
    'apikey',
    'x-api-key',
    'x-goog-api-key',
    'x-auth-token',
    'x-access-token',
    'x-csrf-token',
    'ocp-apim-subscription-key',
    'x-amz-security-token',
    'remote-user',
    'remote-groups',
    'x-remote-user',
    'x-forwarded-email',
    'x-forwarded-user',
    'x-forwarded-groups',
    'x-forwarded-preferred-username',
    'x-forwarded-access-token',
    'x-auth-request-email',
    'x-auth-request-access-token',
    'x-forwarded-client-cert',
    'x-amzn-oidc-data',
    'x-goog-iap-jwt-assertion',
    'x-ms-client-principal',
    'x-ms-client-principal-name',
    'x-ms-token-aad-access-token',
    'cf-access-jwt-assertion',
    'tailscale-user-login',
    'x-authentik-username',
    'x-pomerium-jwt-assertion',
    'x-proxy-secret',
    'x-svc-proxy-secret',
  ])('in "%s" is not forwarded', (name) => {
    expect(isCredential(name)).toBe(true);
    expect(request(name, 'secret', name.toUpperCase(), 'secret', 'accept', '*/*')).toEqual(['accept: */*']);
  });

  test.each([
    'accept',
    'content-type',
    'user-agent',
    'x-stainless-os',
    'openai-beta',
    'anthropic-version',
    'traceparent',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-real-ip',
    'idempotency-key',
    'x-session-id',
    'authorization-hint',
  ])('is not suspected in "%s"', (name) => {
    expect(request(name, 'value')).toEqual([`${name}: value`]);
  });
});

describe('what a browser says about its page', () => {
  test('is read and not forwarded', () => {
    const raw = [
      'Origin',
      'http://a',
      'Sec-Fetch-Site',
      'same-origin',
      'Sec-Fetch-Mode',
      'cors',
      'Sec-Fetch-Dest',
      'empty',
      'Referer',
      'http://a/x',
    ];
    expect(request(...raw)).toEqual([]);
    expect(parseRequestHead(raw)).toMatchObject({ origin: 'http://a', fetchSite: 'same-origin', fetchMode: 'cors', fetchDest: 'empty' });
  });

  test('is joined if it is repeated', () => {
    expect(parseRequestHead(['origin', 'http://a', 'Origin', 'http://b']).origin).toBe('http://a, http://b');
  });
});

test('the value of a header of an answer has no blanks around it', () => {
  expect(response('x-one:  1 2\t ', 'x-two:', 'x-three: \t')).toEqual(['x-one', '1 2', 'x-two', '', 'x-three', '']);
});

describe('headers that Connection names', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['in one header', ['Connection', 'close, X-One', 'x-one', '1', 'x-two', '2'], ['x-two: 2']],
    [
      'in two headers',
      ['Connection', 'x-one', 'Connection', 'X-Two, keep-alive', 'x-one', '1', 'x-two', '2', 'x-three', '3'],
      ['x-three: 3'],
    ],
    ['after a header without names', ['Connection', 'keep-alive', 'connection', 'x-one', 'x-one', '1'], []],
    ['before a header without names', ['Connection', 'x-one', 'connection', 'close', 'x-one', '1'], []],
    [
      'unless the body would lose its meaning',
      ['Connection', 'content-type', 'content-type', 'application/json'],
      ['content-type: application/json'],
    ],
  ])('are not forwarded to the upstream: %s', (_what, raw, forwarded) => {
    expect(request(...raw)).toEqual(forwarded);
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ['in one header', ['Connection: close, X-One', 'x-one: 1', 'x-two: 2'], ['x-two', '2']],
    ['in two headers', ['x-one: 1', 'Connection: x-one', 'connection: X-Two', 'x-two: 2', 'x-three: 3'], ['x-three', '3']],
    ['whose value is the name of another', ['Connection: x-one', 'x-two: x-one'], ['x-two', 'x-one']],
    ['unless the body would lose its meaning', ['Connection: content-type', 'content-type: text/plain'], ['content-type', 'text/plain']],
  ])('are not forwarded to the client: %s', (_what, lines, headers) => {
    expect(response(...lines)).toEqual(headers);
  });

  test('do not change the length of the body', () => {
    const head = parseResponseHead('HTTP/1.1 200 OK\r\nConnection: content-length\r\ncontent-length: 2');
    expect(head).toMatchObject({ headers: [], framing: { kind: 'length', bytes: 2 } });
  });
});
