/** Parses JSON from outside. Returns undefined if the text is not valid JSON. Pure. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
