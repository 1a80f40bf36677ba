/** One term for each concept: `ARCHITECTURE.md` lists the terms of the linter's glossary, and the documentation uses no synonym of one. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findSynonyms, synonymsFor } from '../../scripts/lint/find-synonyms.mjs';
import { GLOSSARY, PLAIN_ENGLISH } from '../../scripts/lint/glossary.mjs';
import { ROOT } from './lint-fixtures.ts';

const PAGES = globSync(['*.md', '{docs,manifests,toolboxes,helm,bench}/**/*.md', 'test/**/*.md'], {
  cwd: ROOT,
  exclude: (path) => path.includes('node_modules'),
}).toSorted();
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const wordOf = (each: string | { readonly word: string }): string => (typeof each === 'string' ? each : each.word);

describe('The glossary', () => {
  test('is the section "Glossary" of ARCHITECTURE.md', () => {
    const section = sectionOf(read('ARCHITECTURE.md'), 'Glossary');
    const rows = section.split('\n').filter((line) => line.startsWith('|'));
    expect(rows.slice(2).map(cellsOf)).toEqual(GLOSSARY.map(({ term, meaning, not = [] }) => [term, meaning, not.map(wordOf).join(', ')]));
  });

  test('has each term once, in alphabetical order, with a sentence that explains it', () => {
    const terms = GLOSSARY.map(({ term }) => term);
    expect(terms).toEqual([...new Set(terms)].toSorted());
    expect(GLOSSARY.filter(({ meaning }) => !/^[A-Z"`].*\.$/.test(meaning)).map(({ term }) => term)).toEqual([]);
  });

  test('replaces each word by one term', () => {
    const words = [...GLOSSARY.flatMap(({ not = [] }) => not), ...PLAIN_ENGLISH.flatMap(({ not }) => not)].map(wordOf);
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  });
});

test.each(PAGES)('%s uses the terms of the glossary and plain words', (page) => {
  // The glossary itself names the words that are not used.
  const text = page === 'ARCHITECTURE.md' ? read(page).replace(sectionOf(read(page), 'Glossary'), '') : read(page);
  expect(problemsIn(text, page)).toEqual([]);
});

describe('A synonym', () => {
  const FOUND = [
    'last words',
    'Last words of it',
    'the_last_words',
    'LAST_WORDS',
    'lastWords',
    'theLastWords',
    'last-words.ts',
    'last\n * words',
  ];
  const NOT_FOUND = ['lasting words', 'last wordsmith', 'ballast words', 'lastWordsmith', 'the last of its words'];

  test.each(FOUND)('is found in "%s"', (text) => {
    expect(problemsIn(text, 'src/files/x.ts')).toHaveLength(1);
  });

  test.each(NOT_FOUND)('is not found in "%s"', (text) => {
    expect(problemsIn(text, 'src/files/x.ts')).toEqual([]);
  });

  test('is found where it stands alone, in the plural, and at the end of a name', () => {
    expect(problemsIn('a mend, two mends; it was mended; canMend', 'src/files/x.ts')).toHaveLength(4);
  });

  test('is let through where the word is the term of somebody else', () => {
    expect(problemsIn('renews its lease', 'src/cluster/leadership/leadership.ts')).toEqual([]);
    expect(problemsIn('renews its lease', 'src/gateway/traffic/hold.ts')).toHaveLength(1);
    expect(problemsIn('They can be told apart', 'src/gateway/traffic/hold.ts')).toEqual([]);
  });

  test('comes with the term to use, and where that is written', () => {
    expect(problemsIn('a notebook', 'src/reconciler/x.ts')).toEqual([
      'Line 1: Write "tracker" instead of "notebook" (glossary: "scripts/lint/glossary.mjs")',
    ]);
  });
});

function problemsIn(text: string, path: string): readonly string[] {
  return findSynonyms(text, synonymsFor(path), () => false).map(
    ({ index, message }) => `Line ${text.slice(0, index).split('\n').length}: ${message}`,
  );
}

function sectionOf(text: string, heading: string): string {
  const begin = text.indexOf(`\n## ${heading}\n`);
  if (begin === -1) return '';
  const end = text.indexOf('\n## ', begin + 1);
  return text.slice(begin, end === -1 ? undefined : end);
}

function cellsOf(row: string): readonly string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
