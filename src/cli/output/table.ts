/** Aligned tables. The last column gets the rest of the terminal's width. */
import { stripVTControlCharacters } from 'node:util';

const GAP = '  ';
/** A narrower column would be useless. The terminal may wrap lines then. */
const MIN_LAST_COLUMN = 12;

/** `columns` is the width to keep to; `Infinity` cuts nothing. Cells may contain colours. Pure if `paintHead` is. */
export function tableLines(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number,
  paintHead: (text: string) => string = (text) => text,
): readonly string[] {
  const widths = head.map((title, index) => Math.max(title.length, ...rows.map((row) => width(row[index] ?? ''))));
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + GAP.length, 0);
  const room = Math.max(MIN_LAST_COLUMN, columns - before);
  const lineOf = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => (index === cells.length - 1 ? cut(cell, room) : cell + ' '.repeat((widths[index] ?? 0) - width(cell))))
      .join(GAP)
      .trimEnd();
  return [paintHead(lineOf(head)), ...rows.map(lineOf)];
}

function width(text: string): number {
  return stripVTControlCharacters(text).length;
}

function cut(text: string, room: number): string {
  return width(text) <= room ? text : `${stripVTControlCharacters(text).slice(0, room - 1)}…`;
}
