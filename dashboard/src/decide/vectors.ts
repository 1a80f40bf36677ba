/** Similarity of embedded texts. Pure. */

/** Cosine similarity, -1 to 1; 0 if a vector is zero. */
export function cosineSimilarity(one: readonly number[], other: readonly number[]): number {
  let [dot, oneSquared, otherSquared] = [0, 0, 0];
  for (const [index, value] of one.entries()) {
    const beside = other[index] ?? 0;
    dot += value * beside;
    oneSquared += value * value;
    otherSquared += beside * beside;
  }
  const lengths = Math.sqrt(oneSquared) * Math.sqrt(otherSquared);
  return lengths === 0 ? 0 : Math.max(-1, Math.min(1, dot / lengths));
}

/** Non-empty lines, trimmed. */
export function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
