/** Returns the text, or its first `most` UTF-16 units and `…` if it is longer. A character is never cut in half: what is then left of it goes as well. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  const isHalf = last >= 0xd8_00 && last <= 0xdb_ff;
  return `${text.slice(0, isHalf ? most - 1 : most)}…`;
}
