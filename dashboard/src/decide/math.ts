/** Where formulas stand in Markdown: `$…$`, `$$…$$`, `\\(…\\)` and `\\[…\\]`. Pure. */

export interface Formula {
  /** With its delimiters. */
  readonly raw: string;
  readonly tex: string;
  readonly isBlock: boolean;
}

/**
 * A price is no formula: a single dollar opens one only before a character, and closes it only after one and before
 * none that continues a number.
 */
const INLINE =
  /^(?:\$\$(?<display>[^$]+)\$\$|\$(?!\s)(?<dollar>(?:\\.|[^$\n\\])*?[^\s\\$])\$(?!\d)|\\\((?<round>.{1,2000}?)\\\)|\\\[(?<square>.{1,2000}?)\\\])/;
const BLOCK = /^ {0,3}(?:\$\$(?<dollar>[^$]+)\$\$|\\\[(?<square>[^]{1,4000}?)\\\])[ \t]*(?:\n+|$)/;

/** The formula that the text begins with. */
export function readMath(text: string, level: 'block' | 'inline'): Formula | undefined {
  const found = (level === 'block' ? BLOCK : INLINE).exec(text);
  const { display, dollar, round, square } = found?.groups ?? {};
  const tex = (display ?? dollar ?? round ?? square ?? '').trim();
  if (found === null || tex === '') return undefined;
  return { raw: found[0], tex, isBlock: level === 'block' || display !== undefined || square !== undefined };
}

/** Index of what may be the next formula; undefined if there is none. A block begins a line. */
export function findMath(text: string, level: 'block' | 'inline'): number | undefined {
  const index = text.search(level === 'block' ? /\n {0,3}(?:\$\$|\\\[)/ : /\$|\\[([]/);
  return index < 0 ? undefined : index;
}
