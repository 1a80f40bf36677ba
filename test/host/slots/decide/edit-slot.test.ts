import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { patchSlotText, rewriteSlotText } from '../../../../src/host/slots/decide/edit-slot.ts';
import { mergePatch } from '../../../../src/schema/slot/slot-editor.ts';
import { parseDocument } from '../../../../src/files/toml/decide/parse-document.ts';
import { slotDocuments } from '../../../schema/slot-arbitrary.ts';

const lines = (...text: readonly string[]) => text.map((line) => `${line}\n`).join('');
const patched = (text: string, patch: Readonly<Record<string, unknown>>) => {
  const edited = patchSlotText(text, patch);
  return edited.ok ? edited.text : edited.problems;
};

const IMG = lines(
  '#:schema ./slot.schema.json',
  '# The picture slot',
  '',
  'enabled = true   # wanted',
  'provider = "image"',
  '',
  '# What it draws with',
  '[model]',
  '  default = "sdxl-turbo"  # small and quick',
  '  aliases = [',
  '    "dall-e-3", # for old clients',
  '  ]',
  '',
  '[env] # for the card',
  'HSA_OVERRIDE_GFX_VERSION = "11.0.0"',
);

describe('patchSlotText()', () => {
  test('changes one value and no other byte', () => {
    expect(patched(IMG, { enabled: false })).toBe(IMG.replace('enabled = true ', 'enabled = false '));
    expect(patched(IMG, { model: { default: 'flux' } })).toBe(IMG.replace('"sdxl-turbo"', '"flux"'));
  });

  test('does not change the text if the patch changes nothing', () => {
    expect(patched(IMG, { enabled: true, model: { aliases: ['dall-e-3'] }, load: null })).toBe(IMG);
  });

  test('adds keys after the others of their table, with the same indentation', () => {
    expect(patched(IMG, { restartedAt: '2026-01-31T12:00:00Z' })).toBe(
      IMG.replace('provider = "image"\n', 'provider = "image"\nrestarted_at = "2026-01-31T12:00:00Z"\n'),
    );
    expect(patched(IMG, { model: { context: 4096 } })).toBe(IMG.replace('  ]\n', '  ]\n  context = 4096\n'));
    expect(patched(IMG, { env: { 'needs quotes': 'a "b"' } })).toBe(`${IMG}"needs quotes" = "a \\"b\\""\n`);
  });

  test('adds a new table at the end', () => {
    expect(patched(IMG, { lifecycle: { idleTimeout: '15m', swap: 'drain' } })).toBe(
      `${IMG}${lines('', '[lifecycle]', 'idle_timeout = "15m"', 'swap = "drain"')}`,
    );
  });

  test('removes a key or table with its lines and keeps the comment above', () => {
    expect(patched(IMG, { provider: null })).toBe(IMG.replace('provider = "image"\n', ''));
    expect(patched(IMG, { env: null })).toBe(IMG.slice(0, IMG.indexOf('\n[env]')));
    expect(patched(IMG, { model: { aliases: null } })).toBe(IMG.replace(/ {2}aliases[^]*?\n {2}\]\n/, ''));
  });

  test.each([
    ['model.default = "a"\n', { model: { context: 64 } }, 'model.default = "a"\nmodel.context = 64\n'],
    ['model = { default = "a" }\n', { model: { context: 64 } }, 'model = { default = "a", context = 64 }\n'],
    ['model = { default = "a", context = 64 } # x\n', { model: { context: null } }, 'model = { default = "a" } # x\n'],
    ['model = {}\n', { model: { default: 'a' } }, 'model = { default = "a" }\n'],
    ['[model]\r\ndefault = "a"\r\n', { model: { context: 64 } }, '[model]\r\ndefault = "a"\r\ncontext = 64\r\n'],
    ['[model]\ndefault = "a"', { model: { context: 64 } }, '[model]\ndefault = "a"\ncontext = 64'],
    ['[model]\ndefault = "a"', { env: { A: 'b' } }, '[model]\ndefault = "a"\n\n[env]\nA = "b"\n'],
    ['# of the file\n\n# of the table\n[model]\n', { enabled: false }, '# of the file\n\nenabled = false\n\n# of the table\n[model]\n'],
    ['# of the file\n[model]\n', { enabled: false }, '# of the file\nenabled = false\n\n[model]\n'],
    ['[[tolerations]]\nkey = "a"\n[model]\ndefault = "x"\n', { tolerations: null }, '[model]\ndefault = "x"\n'],
    ['[env]\n"a.b" = "1"\n', { env: { 'a.b': '2' } }, '[env]\n"a.b" = "2"\n'],
    ['\u{FEFF}enabled = true\n', { enabled: false }, '\u{FEFF}enabled = false\n'],
    ['', { model: { default: 'a' } }, '[model]\ndefault = "a"\n'],
  ])('%j with %j', (text, patch, expected) => {
    expect(patched(text, patch)).toBe(expected);
  });

  test('refuses values that TOML does not have, and a text that is not TOML', () => {
    expect(patched('', { model: { aliases: ['a', null] } })).toMatchObject([{ message: expect.stringContaining('TOML has no "null"') }]);
    expect(patched('', { env: { A: '\ud800' } })).toMatchObject([{ message: expect.stringContaining('surrogate') }]);
    expect(patched('a = ', { enabled: true })).toMatchObject([{ line: 1, column: 5 }]);
    expect(rewriteSlotText('', 'text')).toMatchObject({ ok: false });
  });

  test('patches any slot with any other slot as RFC 7396 specifies', () => {
    fc.assert(
      fc.property(slotDocuments, slotDocuments, (document, patch) => {
        const text = rewriteSlotText('', document);
        const edited = text.ok ? patchSlotText(text.text, patch) : text;
        expect(edited.ok && parseDocument(edited.text)).toEqual({ ok: true, document: mergePatch(document, patch) });
      }),
      { numRuns: 500 },
    );
  });
});

describe('rewriteSlotText()', () => {
  test('keeps comments if the whole document is replaced', () => {
    const edited = rewriteSlotText(IMG, { enabled: true, provider: 'image', model: { default: 'flux', aliases: ['dall-e-3'] } });
    expect(edited).toEqual({
      ok: true,
      text: IMG.replace('sdxl-turbo', 'flux').slice(0, IMG.replace('sdxl-turbo', 'flux').indexOf('\n[env]')),
    });
  });

  test('replaces a text that cannot be parsed', () => {
    expect(rewriteSlotText('[model', { model: { default: 'a' } })).toEqual({ ok: true, text: '[model]\ndefault = "a"\n' });
  });
});

describe('mergePatch()', () => {
  // The examples of RFC 7396, appendix A, that have an object at the top.
  test.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (target, patch, result) => expect(mergePatch(target, patch)).toEqual(result));
});
