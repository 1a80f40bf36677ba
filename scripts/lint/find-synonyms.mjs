/** Finds words in a text that the glossary replaces by others. Words inside of identifiers count: "lastWords" contains "last words". */
import { SYNONYMS } from './glossary.mjs';

const PATTERNS = SYNONYMS.map((each) => ({ ...each, pattern: patternOf(each.word) }));

/** Occurrences in a text; `isName` says whether an index lies in a name rather than in a sentence. */
export function findSynonyms(text, isName) {
  return PATTERNS.flatMap(({ pattern, use, in: where }) =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => where !== 'names' || isName(index))
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

/** Matches "last words", "lastWords", "LastWords", "last-words" and "LAST_WORDS", and their plurals; not a part of a longer word. */
function patternOf(word) {
  const words = word.split(' ');
  const camel = words.map(capitalised).join('');
  const spaced = words.map((each) => `[${each[0].toUpperCase()}${each[0]}]${each.slice(1)}`).join(String.raw`(?:[\s_-]|\s\*\s)+`);
  const variants = [
    String.raw`(?<![A-Za-z])(?:${spaced}|${words[0]}${words.slice(1).map(capitalised).join('')})s?(?![a-z])`,
    String.raw`(?<=[a-z0-9])${camel}s?(?![a-z])`,
    String.raw`(?<![A-Za-z])${word.toUpperCase().replaceAll(' ', '_')}S?(?![A-Za-z])`,
  ];
  return new RegExp(variants.join('|'), 'g');
}

function capitalised(word) {
  return word[0].toUpperCase() + word.slice(1);
}
