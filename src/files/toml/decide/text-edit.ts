/** Edits a text by offsets, and finds where its lines begin and end. Pure. */

/** Replaces the text from `start` up to `end`. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edits must not overlap. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  // From the last to the first, so that no edit moves the offsets of another one.
  return edits
    .toSorted((left, right) => right.start - left.start)
    .reduce((result, edit) => result.slice(0, edit.start) + edit.text + result.slice(edit.end), text);
}

export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

/** Returns the offset before the line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  if (at === -1) return text.length;
  return at > offset && text[at - 1] === '\r' ? at - 1 : at;
}

/** Returns the offset after the line break. */
export function nextLine(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  return at === -1 ? text.length : at + 1;
}

/** Returns the start of the consecutive lines before offset `start` whose trimmed text `matches`. */
export function linesBefore(text: string, start: number, matches: (line: string) => boolean): number {
  let at = start;
  while (at > 0) {
    const previous = lineStart(text, at - 1);
    if (!matches(text.slice(previous, at).trim())) break;
    at = previous;
  }
  return at;
}

/** Returns the line break that the text uses. */
export function lineBreakOf(text: string): string {
  const at = text.indexOf('\n');
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
}
