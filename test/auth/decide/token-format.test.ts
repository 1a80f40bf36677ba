import { expect, test } from '@jest/globals';
import { formatToken, parseToken } from '../../../src/auth/decide/token-file-text.ts';

const parts = { id: '1a2b3c4d', secret: 'Az09-_'.repeat(8).slice(0, 43) };
const HEX = '0123456789abcdef';
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** All bytes, and characters that look like those of tokens or are no whole characters. */
const CHARACTERS = [
  ...Array.from({ length: 0x1_00 }, (_, code) => String.fromCodePoint(code)),
  'А',
  'ａ',
  '１',
  '\u2028',
  '\u{1f600}',
  '\ud800',
];
const replaced = (text: string, at: number, character: string): string => text.slice(0, at) + character + text.slice(at + 1);

test('a token is read as it was written', () => {
  expect(parseToken(formatToken(parts))).toEqual(parts);
});

test('ids of 8 characters and secrets of 43 are the only lengths', () => {
  const accepted: string[] = [];
  for (let id = 0; id <= 16; id += 1) {
    for (let secret = 0; secret <= 100; secret += 1) {
      if (parseToken(`svc_${'a'.repeat(id)}.${'A'.repeat(secret)}`) !== undefined) accepted.push(`${id}.${secret}`);
    }
  }
  expect(accepted).toEqual(['8.43']);
  for (const length of [1_000, 1_000_000]) expect(parseToken(formatToken({ ...parts, secret: 'A'.repeat(length) }))).toBeUndefined();
});

test('no character of another alphabet is accepted, at any place', () => {
  const token = formatToken(parts);
  const accepted: string[] = [];
  for (let at = 0; at < token.length; at += 1) {
    const right = at < 4 || at === 12 ? (token[at] ?? '') : at < 12 ? HEX : BASE64URL;
    for (const character of CHARACTERS) {
      if (!right.includes(character) && parseToken(replaced(token, at, character)) !== undefined) accepted.push(`${at}: ${character}`);
    }
    expect([at, parseToken(replaced(token, at, right.at(-1) ?? ''))]).toEqual([at, expect.anything()]);
  }
  expect(accepted).toEqual([]);
});

test('nothing may stand before or after it', () => {
  for (const character of CHARACTERS) {
    expect(parseToken(character + formatToken(parts))).toBeUndefined();
    expect(parseToken(formatToken(parts) + character)).toBeUndefined();
  }
});
