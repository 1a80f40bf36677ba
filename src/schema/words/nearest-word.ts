/** Finds the most similar known word, for "did you mean" hints in messages. */

/** Longer words are not compared, because the cost grows with the square of the length. */
const LONGEST = 64;

/** Returns the candidate most similar to `word`, or undefined if none is similar enough. Pure. */
export function nearestWord(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > LONGEST) return undefined;
  const letters = normalise(word);
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const target = normalise(candidate);
    const limit = Math.max(1, Math.floor(Math.max(letters.length, target.length) / 3));
    const distance = editDistance(letters, target);
    if (distance <= limit && (best === undefined || distance < best.distance)) best = { candidate, distance };
  }
  return best?.candidate;
}

const normalise = (word: string): string => word.toLowerCase().replaceAll(/[_-]/g, '');

/** Damerau–Levenshtein distance: insertions, deletions, replacements and swaps of neighbours count one each. */
function editDistance(left: string, right: string): number {
  let beforeLast: readonly number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const next = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      const swapped = row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      next.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (same ? 0 : 1),
          swapped ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforeLast = last;
    last = next;
  }
  return last[right.length] ?? 0;
}

/** Returns the text, cut to `most` UTF-16 units plus `…` if longer, never within a character. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  const isHalf = last >= 0xd8_00 && last <= 0xdb_ff;
  return `${text.slice(0, isHalf ? most - 1 : most)}…`;
}
