/** Compares an answer with what a case expects. Pure. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { Expectations } from '../../schema/slot/evaluation-case.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { compilePattern, compileSchema } from './matchers.ts';
import type { Answered, ToolCall } from './read-answer.ts';

export interface SeenImage {
  readonly width: number;
  readonly height: number;
  /** Undefined where the pixels cannot be read. */
  readonly isBlank: boolean | undefined;
}

/** An answer, with what other slots and its pixels say about it. */
export interface Judged extends Answered {
  /** Cosine of the angle between the embeddings of the answer and of the reference. */
  readonly similarity?: number | undefined;
  /** What the slot "stt" has understood of a speech. Default: the text. */
  readonly heard?: string | undefined;
  /** Undefined for what is no image. */
  readonly seen?: readonly (SeenImage | undefined)[] | undefined;
}

type Check<Key extends keyof Expectations> = (expected: NonNullable<Expectations[Key]>, answer: Judged) => string | undefined;

/** Each returns what was expected, and what came instead where the text of the answer does not show it. */
const CHECKS: { readonly [Key in keyof Required<Expectations>]: Check<Key> } = {
  contains: (part, { text }) => (text.includes(part) ? undefined : `contains ${JSON.stringify(part)}`),
  matches: (pattern, { text }) => (compilePattern(pattern).test?.(text) === true ? undefined : `matches ${JSON.stringify(pattern)}`),
  schema(schema, { text }) {
    const { test, mistake } = compileSchema(schema);
    const problem = mistake ?? test?.(text);
    return problem === undefined ? undefined : `satisfies the JSON Schema: ${problem}`;
  },
  tool: (tool, { calls }) => (calls.some((call) => isCallOf(tool, call)) ? undefined : `calls the tool ${toolText(tool)}`),
  similar: ({ to, atLeast }, { similarity = 0 }) =>
    similarity >= atLeast ? undefined : `is similar to ${JSON.stringify(to)}: ${similarity.toFixed(3)}, less than ${atLeast}`,
  dimension(dimension, { vectors }) {
    const other = vectors.length === 0 ? 'none' : vectors.map(({ length }) => length).find((length) => length !== dimension);
    return other === undefined ? undefined : `has embeddings of dimension ${dimension}, not ${other}`;
  },
  best: (index, { ranking: [first] }) => (first === index ? undefined : `ranks document ${index} first, not ${first ?? 'none'}`),
  transcript({ reference, atMost }, { text, heard = text }) {
    const rate = wordErrorRate(reference, heard);
    return rate <= atMost ? undefined : `says ${JSON.stringify(reference)}: word error rate ${rate.toFixed(3)}, more than ${atMost}`;
  },
  image({ width, height }, { seen = [] }) {
    const wanted = `shows an image of ${width ?? 'any'} x ${height ?? 'any'} pixels that is not blank`;
    if (seen.length === 0) return `${wanted}: there is none`;
    const problems = seen.flatMap((image) => {
      if (image === undefined) return ['it is no PNG, JPEG or WebP image'];
      const isOfSize = image.width === (width ?? image.width) && image.height === (height ?? image.height);
      if (!isOfSize) return [`it has ${image.width} x ${image.height}`];
      return image.isBlank === true ? ['it has one colour'] : [];
    });
    return problems[0] === undefined ? undefined : `${wanted}: ${problems[0]}`;
  },
};

/** Returns a description of each expectation that the answer does not meet. */
export function unmetExpectations(expect: Expectations, answer: Judged): readonly string[] {
  const check = <Key extends keyof Expectations>(key: Key): readonly string[] => {
    const expected = expect[key];
    return expected === undefined ? [] : [CHECKS[key](expected, answer) ?? []].flat();
  };
  return [
    ...check('contains'),
    ...check('matches'),
    ...check('schema'),
    ...check('tool'),
    ...check('similar'),
    ...check('dimension'),
    ...check('best'),
    ...check('transcript'),
    ...check('image'),
  ];
}

function isCallOf({ name, arguments: expected = {} }: NonNullable<Expectations['tool']>, call: ToolCall): boolean {
  const given = call.arguments === '' ? {} : parseJson(call.arguments);
  if (call.name !== name || !isTable(given)) return false;
  return Object.entries(expected).every(([key, value]) => Object.hasOwn(given, key) && isSameValue(given[key], value));
}

const toolText = ({ name, arguments: expected }: NonNullable<Expectations['tool']>): string =>
  `"${name}"${expected === undefined ? '' : ` with ${JSON.stringify(expected)}`}`;

/** Cosine of the angle between two vectors; 0 if they cannot be compared. */
export function cosine(one: readonly number[], other: readonly number[]): number {
  const product = (left: readonly number[], right: readonly number[]): number =>
    left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);
  const similarity = product(one, other) / Math.sqrt(product(one, one) * product(other, other));
  return one.length === other.length && Number.isFinite(similarity) ? similarity : 0;
}

/** Scripts without spaces between words: their letters are compared as words. */
const LETTER_AS_WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}]/gu;

/** Case, punctuation and forms of the same letter do not count. */
const wordsOf = (text: string): readonly string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/['’]/g, '')
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' ')
    .replaceAll(LETTER_AS_WORD, ' $& ')
    .split(' ')
    .filter((word) => word !== '');

/** Least number of words to replace, add and remove, for each word of the reference. */
export function wordErrorRate(reference: string, heard: string): number {
  const [expected, given] = [wordsOf(reference), wordsOf(heard)];
  if (expected.length === 0) return given.length === 0 ? 0 : 1;
  // The words that are too many alone make more than one mistake for each word.
  if (given.length > 2 * expected.length) return (given.length - expected.length) / expected.length;
  let row = given.map((_word, index) => index + 1);
  for (const [line, word] of expected.entries()) {
    let [diagonal, left] = [line, line + 1];
    row = row.map((above, index) => {
      left = Math.min(above + 1, left + 1, diagonal + (given[index] === word ? 0 : 1));
      diagonal = above;
      return left;
    });
  }
  return (row.at(-1) ?? expected.length) / expected.length;
}
