/** Which caller a capture means. */
import { expect, test } from '@jest/globals';
import { findCaller } from '../../../../src/api/manage/decide/find-caller.ts';

const TOKENS = [
  { id: '1a2b3c4d', label: 'laptop' },
  { id: '00000001', label: 'ci' },
  { id: '00000002', label: 'ci' },
];

test.each([
  ['token:1a2b3c4d', true, 'token:1a2b3c4d'],
  ['laptop', true, 'token:1a2b3c4d'],
  ['user:Anna@Example.com', true, 'user:anna@example.com'],
  ['local', true, 'local'],
  ['wyoming', true, 'wyoming'],
  ['wyoming', false, 'wyoming'],
  ['anyone', false, 'anyone'],
])('"%s", with authentication %s, is "%s"', (text, isAuthOn, key) => {
  expect(findCaller(text, TOKENS, isAuthOn)).toEqual({ ok: true, key });
});

test.each([
  ['a token that does not exist', 'token:ffffffff', true, 'token.not_found', 'There is no caller "token:ffffffff"'],
  ['a label that does not exist', 'phone', true, 'token.not_found', 'There is no caller "phone"'],
  ['an id without what it is of', '1a2b3c4d', true, 'token.not_found', 'There is no caller "1a2b3c4d"'],
  ['a label of two tokens', 'ci', true, 'request.invalid', 'name one of token:00000001, token:00000002'],
  ['callers without a credential, where everyone has one', 'anyone', true, 'token.not_found', 'There is no caller "anyone"'],
  ['a token, where nobody shows one', 'laptop', false, 'token.not_found', 'Authentication is off'],
])('refuses %s', (_what, text, isAuthOn, code, message) => {
  expect(findCaller(text, TOKENS, isAuthOn)).toEqual({ ok: false, code, message: expect.stringContaining(message) });
});
