/** The lines of a log that the page keeps. Pure. */

export interface LogLines {
  readonly lines: readonly string[];
  /** The last line, which has no end yet. */
  readonly open: string;
}

export const NO_LINES: LogLines = { lines: [], open: '' };
const MOST_LINES = 5000;

export function addText({ lines, open }: LogLines, text: string): LogLines {
  const parts = (open + text).split('\n');
  const rest = parts.pop() ?? '';
  return { lines: [...lines, ...parts].slice(-MOST_LINES), open: rest };
}

/** Matching lines are marked, and the others stay: what went before an error explains it. */
export function matchesOf(lines: readonly string[], search: string): readonly number[] {
  const wanted = search.trim().toLowerCase();
  return wanted === '' ? [] : lines.flatMap((line, index) => (line.toLowerCase().includes(wanted) ? [index] : []));
}
