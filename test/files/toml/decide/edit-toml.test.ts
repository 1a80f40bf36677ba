import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { editToml } from '../../../../src/files/toml/decide/edit-toml.ts';
import { mergePatch } from '../../../../src/schema/slot/slot-editor.ts';
import { isTable } from '../../../../src/schema/words/key-case.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import { mergePatches, styles, tomlTable, writeToml } from './toml-arbitraries.ts';

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  return isTable(value) ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)])) : value;
}

const meaning = (text: string): unknown => {
  try {
    return plain(parse(text));
  } catch {
    return undefined;
  }
};

const edit = (text: string, patch: unknown) => editToml(text, mergePatch(meaning(text), patch), meaning);

describe('editToml()', () => {
  test('the generated texts mean the documents they are generated from', () => {
    fc.assert(
      fc.property(tomlTable, styles, (table, style) => {
        expect(isSameValue(meaning(writeToml(table, style)), table)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('applies any patch to any text', () => {
    fc.assert(
      fc.property(tomlTable, styles, mergePatches, (table, style, patch) => {
        const text = writeToml(table, style);
        const edited = edit(text, patch);
        expect(edited).toBeDefined();
        expect(isSameValue(meaning(edited ?? ''), mergePatch(table, patch))).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  test('turns any text into any other document', () => {
    fc.assert(
      fc.property(tomlTable, styles, tomlTable, (table, style, wanted) => {
        const edited = editToml(writeToml(table, style), wanted, meaning);
        expect(isSameValue(meaning(edited ?? '='), wanted)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test('does not change any other line', () => {
    fc.assert(
      fc.property(tomlTable, styles, fc.string({ minLength: 1, maxLength: 5 }), (table, style, word) => {
        const text = `# top\n\nkept = 1 # kept\nchanged = 2 # changed\n\n${writeToml({ deep: table }, style)}`;
        const edited = edit(text, { changed: word, added: word });
        expect(edited?.startsWith('# top\n\nkept = 1 # kept\nchanged = "')).toBe(true);
        const rest = new Set(edited?.split(/\r?\n/));
        for (const line of text.split(/\r?\n/).slice(4)) expect(rest).toContain(line);
      }),
      { numRuns: 500 },
    );
  });
});
