/** Joins the tokens of a model to words with times. Pure. */
import type { Word } from './format-transcript.ts';

/** A token that begins a word begins with a space or with the sign of SentencePiece for it. */
const BEGINS_WORD = /^[ ▁]/;

/** `timestamps`: the begin of each token in seconds from the begin of the piece; `end`: the end of the piece. */
export function joinWords(tokens: readonly string[], timestamps: readonly number[], start: number, end: number): readonly Word[] {
  if (tokens.length === 0 || tokens.length !== timestamps.length) return [];
  const words: { word: string; start: number }[] = [];
  tokens.forEach((token, index) => {
    const last = words.at(-1);
    const text = token.replaceAll(/[ ▁]/g, '');
    if (last === undefined || (BEGINS_WORD.test(token) && text !== '')) words.push({ word: text, start: start + (timestamps[index] ?? 0) });
    else last.word += text;
  });
  const named = words.filter(({ word }) => word !== '');
  return named.map(({ word, start: from }, index) => ({ word, start: from, end: Math.max(from, named[index + 1]?.start ?? end) }));
}
