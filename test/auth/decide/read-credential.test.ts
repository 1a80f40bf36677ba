import { describe, expect, test } from '@jest/globals';
import { readCredential } from '../../../src/auth/decide/decide-access.ts';

const read = (headers: readonly string[], isProxy = false, secret?: string) =>
  readCredential(headers, { isProxy: () => isProxy, matchesSecret: (value) => secret === undefined || value === secret });
const NONE = { kind: 'none' };
const bearer = (token: string) => ({ kind: 'bearer', token });
const email = (text: string) => ({ kind: 'email', email: text });

describe('a bearer token', () => {
  test.each([
    [['Authorization', 'Bearer svc_x'], bearer('svc_x')],
    [['authorization', 'bearer svc_x'], bearer('svc_x')],
    [['AUTHORIZATION', 'BEARER   svc_x '], bearer('svc_x')],
    // Present and wrong, not absent.
    [['Authorization', 'Bearer'], bearer('')],
    [['Authorization', 'Bearer '], bearer('')],
    [['x-api-key', 'svc_x'], bearer('svc_x')],
    [['Authorization', 'Bearer svc_x', 'X-Api-Key', 'svc_x'], bearer('svc_x')],
    [['API-Key', 'svc_x'], bearer('svc_x')],
    [['Authorization', 'svc_x'], bearer('svc_x')],
    [['Authorization', 'svc_x', 'api-key', 'svc_x'], bearer('svc_x')],
    [['Authorization', 'Basic YTpi', 'x-api-key', 'svc_x'], bearer('svc_x')],
  ])('%j', (headers, credential) => expect(read(headers)).toEqual(credential));

  test.each([
    [['Authorization', 'Bearer a', 'Authorization', 'Bearer b']],
    [['Authorization', 'Bearer a', 'X-Api-Key', 'b']],
    [['Authorization', 'svc_a', 'api-key', 'b']],
    [['X-Api-Key', '', 'Authorization', 'Bearer b']],
  ])('is ambiguous if there are two: %j', (headers) => expect(read(headers)).toEqual({ kind: 'ambiguous' }));

  test.each([
    [[]],
    [['Authorization', 'Basic YTpi']],
    [['Authorization', 'Digest x']],
    [['Authorization', 'Bearersvc_x']],
    [['Authorization', '']],
  ])('is absent in %j', (headers) => expect(read(headers)).toEqual(NONE));
});

describe('a forwarded e-mail address', () => {
  test('counts only from a trusted proxy', () => {
    expect(read(['X-Forwarded-Email', 'admin'], true)).toEqual(email('admin'));
    expect(read(['x-forwarded-EMAIL', 'admin'], true)).toEqual(email('admin'));
    expect(read(['X-Forwarded-Email', 'admin'])).toEqual(NONE);
  });

  test('counts less than a bearer token, also than a wrong one, and beside "Basic" that the proxy passes on', () => {
    expect(read(['X-Forwarded-Email', 'admin', 'Authorization', 'Bearer no'], true)).toEqual(bearer('no'));
    expect(read(['X-Forwarded-Email', 'admin', 'Authorization', 'Basic YTpi'], true)).toEqual(email('admin'));
  });

  test('does not count if it is empty, sent twice, or written otherwise', () => {
    expect(read(['X-Forwarded-Email', ' '], true)).toEqual(NONE);
    expect(read(['X-Forwarded-Email', 'admin', 'x-forwarded-email', 'admin'], true)).toEqual(NONE);
    expect(read(['X_Forwarded_Email', 'admin'], true)).toEqual(NONE);
  });

  test('needs the secret of the proxy where one is set, once', () => {
    const headers = ['X-Forwarded-Email', 'admin'];
    const secret = ['X-Svc-Proxy-Secret', 'secret'];
    expect(read(headers, true, 'secret')).toEqual(NONE);
    expect(read([...headers, ...secret], true, 'secret')).toEqual(email('admin'));
    expect(read([...headers, ...secret], false, 'secret')).toEqual(NONE);
    expect(read([...headers, 'X-Svc-Proxy-Secret', 'other'], true, 'secret')).toEqual(NONE);
    expect(read([...headers, ...secret, ...secret], true, 'secret')).toEqual(NONE);
  });
});
