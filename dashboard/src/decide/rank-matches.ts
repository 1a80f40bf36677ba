/** Which texts of a long list a few typed letters mean. Pure. */

/** 3: it begins a word of the text. 2: it is inside. Up to 1: its letters are there in order, the closer the more. */
function scoreWord(word: string, text: string): number {
  const at = text.indexOf(word);
  if (at >= 0) return at === 0 || ' -_:'.includes(text.charAt(at - 1)) ? 3 : 2;
  const first = text.indexOf(word.charAt(0));
  const last = word.split('').reduce((from, letter) => (from === -1 ? -1 : text.indexOf(letter, from) + 1 || -1), first);
  return first === -1 || last === -1 ? 0 : word.length / (last - first);
}

/** The `most` best ones in which each word is found. Of equal ones the shorter comes first, then the earlier. */
export function rankMatches<Entry extends { readonly text: string }>(
  typed: string,
  entries: readonly Entry[],
  most: number,
): readonly Entry[] {
  const words = typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return entries.slice(0, most);
  return entries
    .flatMap((entry) => {
      const text = entry.text.toLowerCase();
      const scores = words.map((word) => scoreWord(word, text));
      return scores.includes(0) ? [] : { entry, score: scores.reduce((sum, each) => sum + each) };
    })
    .toSorted((one, other) => other.score - one.score || one.entry.text.length - other.entry.text.length)
    .slice(0, most)
    .map(({ entry }) => entry);
}
