/** Which texts of a long list a few typed letters mean. Pure. */

/** 3: it begins a word of the text. 2: it is inside. Up to 1: its letters are there in order, the closer the more. */
function scoreWord(word: string, text: string): number {
  if ([' ', '-', '_', ':'].some((before) => ` ${text}`.includes(`${before}${word}`))) return 3;
  if (text.includes(word)) return 2;
  const first = text.indexOf(word.charAt(0));
  const last = word.split('').reduce((at, letter) => (at === -1 ? -1 : text.indexOf(letter, at) + 1 || -1), first);
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
      const scores = words.map((word) => scoreWord(word, entry.text.toLowerCase()));
      return scores.includes(0) ? [] : { entry, score: scores.reduce((sum, each) => sum + each) };
    })
    .toSorted((one, other) => other.score - one.score || one.entry.text.length - other.entry.text.length)
    .slice(0, most)
    .map(({ entry }) => entry);
}
