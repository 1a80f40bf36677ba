/** Terms of our own are few and listed in `ARCHITECTURE.md`; neither code nor documentation uses their invented synonyms, and no standard term is banned. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findSynonyms } from '../../scripts/lint/find-synonyms.mjs';
import { GLOSSARY, SYNONYMS } from '../../scripts/lint/glossary.mjs';
import { ROOT } from './lint-fixtures.ts';

const PAGES = globSync(['*.md', '{docs,manifests,toolboxes,helm,bench}/**/*.md', 'test/**/*.md'], {
  cwd: ROOT,
  exclude: (path) => path.includes('node_modules'),
}).toSorted();
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
/** Engineers know these, and the house uses them. */
const STANDARD =
  'string, response, request, semaphore, throttle, ring buffer, memo, pool, lease, garbage collection, rate limit, checksum, noise floor, pending, in flight, latency, kubelet restart, cast, burst, cache, batch, whoever, shall, tell';

describe('The glossary', () => {
  test('is the section "Glossary" of ARCHITECTURE.md', () => {
    const [, section = ''] = read('ARCHITECTURE.md').split('\n## Glossary\n');
    const entries = [...section.matchAll(/^- \*\*(.+?)\*\*: (.*)$/gm)].map(([, term, meaning]) => ({ term, meaning }));
    expect(entries).toEqual(GLOSSARY);
  });

  test('has few terms, each once, in alphabetical order, with a line that explains it', () => {
    const terms = GLOSSARY.map(({ term }) => term);
    expect(terms).toEqual([...new Set(terms)].toSorted());
    expect(terms.length).toBeLessThanOrEqual(25);
    expect(GLOSSARY.filter(({ meaning }) => !/^[A-Z].*\.$/.test(meaning) || meaning.length > 120)).toEqual([]);
  });

  test('bans each word once, no term of its own and no standard term', () => {
    const words = SYNONYMS.map(({ word }) => word);
    expect(words).toEqual([...new Set(words)]);
    expect(problemsIn([STANDARD, ...GLOSSARY.map(({ term, meaning }) => `${term}: ${meaning}`)].join('\n'))).toEqual([]);
  });
});

test.each(PAGES)('%s uses no synonym of a term', (page) => {
  expect(problemsIn(read(page))).toEqual([]);
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
    expect(problemsIn(text)).toHaveLength(1);
  });

  test.each(NOT_FOUND)('is not found in "%s"', (text) => {
    expect(problemsIn(text)).toEqual([]);
  });

  test('is found where it stands alone, in the plural, and at the end of a name', () => {
    expect(problemsIn('a mend, two mends; it was mended; canMend')).toHaveLength(4);
  });

  test('comes with the term to use, and where that is written', () => {
    expect(problemsIn('a notebook')).toEqual(['Line 1: Write "tracker" instead of "notebook" (glossary: "scripts/lint/glossary.mjs")']);
  });
});

function problemsIn(text: string): readonly string[] {
  return findSynonyms(text, () => false).map(({ index, message }) => `Line ${text.slice(0, index).split('\n').length}: ${message}`);
}
