/** Edits of a text by offsets, and where its lines begin and end. Pure. */

/** Replace what stands from `start` to `end`. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edits may not overlap. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  // From the last to the first, so that no edit moves what another one points at.
  return edits
    .toSorted((left, right) => right.start - left.start)
    .reduce((result, edit) => result.slice(0, edit.start) + edit.text + result.slice(edit.end), text);
}

export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

/** Before the line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  if (at === -1) return text.length;
  return at > offset && text[at - 1] === '\r' ? at - 1 : at;
}

/** Behind the line break. */
export function nextLine(text: string, offset: number): number {
  const at = text.indexOf('\n', offset);
  return at === -1 ? text.length : at + 1;
}

/** The start of the blank lines that stand directly before the line that begins at `start`. */
export function blankLinesBefore(text: string, start: number): number {
  let at = start;
  while (at > 0) {
    const previous = lineStart(text, at - 1);
    if (text.slice(previous, at).trim() !== '') break;
    at = previous;
  }
  return at;
}

/** The start of the comment lines that stand directly before the line that begins at `start`. */
export function commentLinesBefore(text: string, start: number): number {
  let at = start;
  while (at > 0) {
    const previous = lineStart(text, at - 1);
    if (!text.slice(previous, at).trimStart().startsWith('#')) break;
    at = previous;
  }
  return at;
}

/** The line break that the text uses. */
export function lineBreakOf(text: string): string {
  const at = text.indexOf('\n');
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
}
