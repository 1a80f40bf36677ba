import { describe, expect, test } from '@jest/globals';
import { parseTokenText, writeTokenText, type TokenRow } from '../../../src/auth/decide/token-file-text.ts';

const HASH = '$argon2id$v=19$m=19456,p=1,t=2$J3eyrkKq0JoPHJ0VWDgJqQ$jgTkN5BcMi3i6BRf38RvxWyZGy0eeORZb2kFfFp0Hpw';
const row = (more: Partial<TokenRow> = {}): TokenRow => ({
  label: 'ci',
  scope: 'v1-only',
  created_at: '2026-11-22T10:00:00.000Z',
  hash: HASH,
  ...more,
});
const text = (changes = ''): string =>
  `# mine\n[tokens.1a2b3c4d] # laptop\nlabel = "ci"\nscope = "v1-only"\ncreated_at = "2026-11-22T10:00:00.000Z"\nhash = "${HASH}"\n${changes}`;
const problems = (content: string): string => {
  const parsed = parseTokenText(content, 'tokens.toml');
  return parsed.ok ? '' : parsed.problems.join('\n');
};

describe('reading', () => {
  test('an empty file has no tokens', () => {
    expect(parseTokenText('', 'tokens.toml')).toEqual({ ok: true, tokens: new Map() });
    expect(parseTokenText('# nothing yet\n', 'tokens.toml')).toEqual({ ok: true, tokens: new Map() });
  });

  test('a table for each token', () => {
    expect(parseTokenText(text(), 'tokens.toml')).toEqual({ ok: true, tokens: new Map([['1a2b3c4d', row()]]) });
  });

  test.each([
    ['a scope that does not exist', text().replace('v1-only', 'v2-only'), /tokens\.toml:4:\d+: .*"v1-only"/],
    ['an id of another form', text().replace('1a2b3c4d', 'laptop'), /tokens\.toml:2:\d+: .*8 hexadecimal characters/],
    ['the same id twice', text('[tokens.1a2b3c4d]\nlabel = "b"\n'), /tokens\.toml:7:\d+: Correct the TOML syntax/],
    ['a missing hash', text().replace(/hash = .*\n/, ''), /"tokens\.1a2b3c4d\.hash"/],
    ['a hash of another kind', text().replace('$argon2id$', '$2b$'), /begins with "\$argon2id\$"/],
    ['an unknown key', text('secret = "x"\n'), /Unknown key "secret"/],
    ['another table', text('[token]\n'), /tokens/],
    ['no TOML', '[tokens', /tokens\.toml:1:\d+: Correct the TOML syntax/],
  ])('%s is refused with its place', (_, content, message) => expect(problems(content)).toMatch(message));

  test('no message contains a hash', () => {
    for (const broken of [
      text().replace('$argon2id$', '$argon2i$'),
      text().replace(`"${HASH}"`, `"${HASH}`),
      text().replace('hash =', 'hash'),
    ]) {
      expect(problems(broken)).not.toBe('');
      expect(problems(broken)).not.toContain('jgTkN5');
    }
  });
});

describe('writing', () => {
  test('adds and removes tables, and keeps comments and order', () => {
    const added = writeTokenText(
      text(),
      new Map([
        ['1a2b3c4d', row()],
        ['00000001', row({ label: 'two "quotes"', scope: 'admin' })],
      ]),
    );
    expect(added).toContain('# mine\n[tokens.1a2b3c4d] # laptop\n');
    expect(parseTokenText(added ?? '', '')).toMatchObject({
      ok: true,
      tokens: new Map([
        ['1a2b3c4d', row()],
        ['00000001', row({ label: 'two "quotes"', scope: 'admin' })],
      ]),
    });
    expect(writeTokenText(added ?? '', new Map([['1a2b3c4d', row()]]))).toContain('# laptop');
    expect(parseTokenText(writeTokenText(text(), new Map()) ?? 'x', '')).toEqual({ ok: true, tokens: new Map() });
  });

  test('begins a file', () => {
    expect(parseTokenText(writeTokenText('# Tokens\n', new Map([['1a2b3c4d', row()]])) ?? 'x', '')).toMatchObject({ ok: true });
  });
});
