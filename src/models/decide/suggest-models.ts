/** Ids of the catalogue that somebody may have meant. Pure. */
import { nearestWord } from '../../schema/words/nearest-word.ts';

/** A shorter word occurs in too many ids. */
const SHORTEST_PART = 3;
const MOST = 3;

/** Returns the end of a sentence, such as `; did you mean "qwen3-1.7b"?`, or nothing. */
export function suggestModels(word: string, ids: Iterable<string>): string {
  const known = [...ids];
  const near = nearestWord(word, known);
  const part = word.toLowerCase();
  const longer = part.length < SHORTEST_PART ? [] : known.filter((id) => id.toLowerCase().includes(part)).slice(0, MOST);
  const meant = longer.length > 0 ? longer : near === undefined ? [] : [near];
  const quoted = meant.map((id) => `"${id}"`);
  const last = quoted.pop();
  if (last === undefined) return '';
  return `; did you mean ${quoted.length === 0 ? last : `${quoted.join(', ')} or ${last}`}?`;
}
