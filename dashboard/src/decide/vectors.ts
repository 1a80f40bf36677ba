/** Similarity of embedded texts. Pure. */

/** Cosine similarity, -1 to 1; 0 if a vector is zero. */
export function similarity(one: readonly number[], other: readonly number[]): number {
  let [product, ofOne, ofOther] = [0, 0, 0];
  for (const [index, value] of one.entries()) {
    const beside = other[index] ?? 0;
    product += value * beside;
    ofOne += value * value;
    ofOther += beside * beside;
  }
  const lengths = Math.sqrt(ofOne) * Math.sqrt(ofOther);
  return lengths === 0 ? 0 : Math.max(-1, Math.min(1, product / lengths));
}

/** Non-empty lines, trimmed. */
export function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
