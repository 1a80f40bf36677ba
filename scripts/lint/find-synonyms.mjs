/** Finds words in a text that the glossary replaces by others. Words inside of identifiers count: "lastWords" contains "last words". */
import { GLOSSARY, PLAIN_ENGLISH } from './glossary.mjs';

const SYNONYMS = [
  ...GLOSSARY.flatMap(({ term, not = [] }) => not.map((each) => ({ use: [term], ...optionsOf(each) }))),
  ...PLAIN_ENGLISH.flatMap(({ use, not }) => not.map((each) => ({ use, ...optionsOf(each) }))),
];

/** Those that are not to be written in the file at `path` (from the top of the checkout). */
export function synonymsFor(path) {
  return SYNONYMS.filter(({ except = [] }) => !except.some((prefix) => path.startsWith(prefix))).map((each) => ({
    ...each,
    pattern: patternOf(each),
  }));
}

/** Occurrences in a text; `isName` says whether an index lies in a name rather than in a sentence. */
export function findSynonyms(text, synonyms, isName) {
  return synonyms.flatMap(({ pattern, use, ...options }) =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => options.in !== 'names' || isName(index))
      .map(({ index, 0: word }) => ({
        index,
        length: word.length,
        message: `Write ${listOf(use)} instead of "${word.replaceAll(/\s+/g, ' ')}" (glossary: "scripts/lint/glossary.mjs")`,
      })),
  );
}

function listOf(words) {
  const quoted = words.map((word) => `"${word}"`);
  return quoted.length === 1 ? quoted[0] : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

function optionsOf(synonym) {
  return typeof synonym === 'string' ? { word: synonym } : synonym;
}

/** Matches "last words", "lastWords", "LastWords", "last-words" and "LAST_WORDS", and their plurals; not a part of a longer word. */
function patternOf({ word, before }) {
  const words = word.split(' ');
  const camel = words.map(capitalised).join('');
  const spaced = words.map((each) => `[${each[0].toUpperCase()}${each[0]}]${each.slice(1)}`).join(String.raw`(?:[\s_-]|\s\*\s)+`);
  const variants = [
    String.raw`(?<![A-Za-z])(?:${spaced}|${words[0]}${words.slice(1).map(capitalised).join('')})s?(?![a-z])`,
    String.raw`(?<=[a-z0-9])${camel}s?(?![a-z])`,
    String.raw`(?<![A-Za-z])${word.toUpperCase().replaceAll(' ', '_')}S?(?![A-Za-z])`,
  ];
  const follows = before === undefined ? '' : String.raw`(?!\s+(?:\w+\s+)?${before}\b)`;
  return new RegExp(`(?:${variants.join('|')})${follows}`, 'g');
}

function capitalised(word) {
  return word[0].toUpperCase() + word.slice(1);
}
