import { describe, expect, test } from '@jest/globals';
import { parseTokenText, writeTokenText, type TokenRow, type Tokens } from '../../../src/auth/decide/token-file-text.ts';

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
    expect(parseTokenText('', 'tokens.toml')).toMatchObject({ ok: true, tokens: new Map() });
    expect(parseTokenText('# nothing yet\n', 'tokens.toml')).toMatchObject({ ok: true, tokens: new Map() });
  });

  test('a table for each token', () => {
    expect(parseTokenText(text(), 'tokens.toml')).toMatchObject({ ok: true, tokens: new Map([['1a2b3c4d', row()]]) });
  });

  test.each([
    ['a scope that does not exist', text().replace('v1-only', 'v2-only'), /tokens\.toml:4:\d+: .*"v1-only"/],
    ['an id of another form', text().replace('1a2b3c4d', 'laptop'), /tokens\.toml:2:\d+: .*8 hexadecimal characters/],
    ['the same id twice', text('[tokens.1a2b3c4d]\nlabel = "b"\n'), /tokens\.toml:7:\d+: Invalid TOML/],
    ['a missing hash', text().replace(/hash = .*\n/, ''), /"tokens\.1a2b3c4d\.hash"/],
    ['a hash of another kind', text().replace('$argon2id$', '$2b$'), /begins with "\$argon2id\$"/],
    ['an unknown key', text('secret = "x"\n'), /Unknown key "secret"/],
    ['an end without a time', text('expires_at = "2027-01-31"\n'), /tokens\.toml:7:\d+: tokens\.1a2b3c4d\.expires_at: Write a time/],
    ['another table', text('[token]\n'), /tokens/],
    ['no TOML', '[tokens', /tokens\.toml:1:\d+: Invalid TOML/],
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
        ['00000001', row({ label: 'two "quotes"', scope: 'admin', expires_at: '2027-01-31T12:00:00Z' })],
      ]),
    );
    expect(added).toContain('# mine\n[tokens.1a2b3c4d] # laptop\n');
    expect(parseTokenText(added ?? '', '')).toMatchObject({
      ok: true,
      tokens: new Map([
        ['1a2b3c4d', row()],
        ['00000001', row({ label: 'two "quotes"', scope: 'admin', expires_at: '2027-01-31T12:00:00Z' })],
      ]),
    });
    expect(writeTokenText(added ?? '', new Map([['1a2b3c4d', row()]]))).toContain('# laptop');
    expect(parseTokenText(writeTokenText(text(), new Map()) ?? 'x', '')).toMatchObject({ ok: true, tokens: new Map() });
  });

  test('begins a file', () => {
    expect(parseTokenText(writeTokenText('# Tokens\n', new Map([['1a2b3c4d', row()]])) ?? 'x', '')).toMatchObject({ ok: true });
  });

  test('keeps what people have written around a table that goes', () => {
    const first = `[tokens.1a2b3c4d] # laptop\nlabel = "ci"\nscope = "v1-only"\ncreated_at = "2026-11-22T10:00:00.000Z"\nhash = "${HASH}"\n`;
    const second = first.replace('1a2b3c4d', '00000001');
    const tokensOf = (content: string): Tokens => {
      const parsed = parseTokenText(content, '');
      return parsed.ok ? parsed.tokens : new Map();
    };
    const both = `# mine\n${first}# of the office\n${second}# the end\n`;
    expect(writeTokenText(both, tokensOf(second))).toBe(`# mine\n# of the office\n${second}# the end\n`);
    expect(writeTokenText(both, tokensOf(first))).toBe(`# mine\n${first}# of the office\n# the end\n`);
  });

  test.each([
    [
      'dotted keys',
      text()
        .replace(/^\[tokens.*\n/m, '')
        .replace(/^(?=[a-z])/gm, 'tokens.1a2b3c4d.'),
    ],
    ['a header with spaces', text().replace('[tokens.1a2b3c4d]', '[ tokens . 1a2b3c4d ]')],
    ['a text over several lines that looks like a table', text().replace('"ci"', '"""\\\n[tokens.00000001]"""')],
  ])('adds to a file with %s, and loses nothing', (_, content) => {
    const parsed = parseTokenText(content, '');
    if (!parsed.ok) throw new Error(parsed.problems.join());
    expect([...parsed.tokens.keys()]).toEqual(['1a2b3c4d']);
    const wanted = new Map([...parsed.tokens, ['00000002', row()] as const]);
    expect(parseTokenText(writeTokenText(content, wanted) ?? 'x', '')).toMatchObject({ ok: true, tokens: wanted });
  });

  test('reads again only what has changed, with the same result', () => {
    const before = parseTokenText(text(), '');
    if (!before.ok) throw new Error('valid');
    const after = parseTokenText(text().replace('v1-only', 'admin'), '', before.tables);
    expect(after).toMatchObject({ ok: true, tokens: new Map([['1a2b3c4d', row({ scope: 'admin' })]]) });
    expect(parseTokenText(text().replace('v1-only', 'root'), '', before.tables)).toMatchObject({ ok: false });
  });
});
