/** Results in the format of `-o`: tables, JSON, YAML or names. */
import { stripVTControlCharacters } from 'node:util';
import { formatSize } from '../../schema/words/quantities.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { withoutControls, type Terminal } from './terminal.ts';

export const OUTPUTS = ['table', 'wide', 'json', 'yaml'] as const;
export type Output = (typeof OUTPUTS)[number] | 'name';

/** Options of verbs with `-o`. */
export interface OutputOptions extends ServiceOptions {
  readonly output: Output;
}

export interface Column<T> {
  readonly title: string;
  /** Shown with `-o wide` only. */
  readonly wide?: true;
  /** Changes with time alone; `--watch` ignores it. */
  readonly moves?: true;
  cell(item: T): string;
  /** Returns the value whose change counts for `--watch`. Default: the cell. */
  markOf?(item: T): string;
}

export interface List<T> {
  /** The key of the items in JSON and YAML. */
  readonly key: string;
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  /** Returns the name for `-o name`, if the verb supports it. */
  readonly nameOf?: (item: T) => string;
}

/** A list with rendered cells. */
export interface Rows {
  readonly key: string;
  readonly columns: readonly Pick<Column<never>, 'title' | 'wide' | 'moves'>[];
  readonly items: readonly Row[];
}

export interface Row {
  readonly name: string;
  readonly value: unknown;
  /** One for each column. */
  readonly cells: readonly string[];
  /** One for each column: the value whose change counts for `--watch`. */
  readonly marks: readonly string[];
}

/** Returns the value as JSON or YAML; undefined for a format for people. */
export async function dataText(output: Output, value: object): Promise<string | undefined> {
  if (output === 'json') return `${JSON.stringify(value, undefined, 2)}\n`;
  return output === 'yaml' ? (await import('yaml')).stringify(value) : undefined;
}

export function toRows<T>({ key, items, columns, nameOf }: List<T>): Rows {
  const rows = items.map((item) => ({
    name: nameOf?.(item) ?? '',
    value: item,
    cells: columns.map((column) => column.cell(item)),
    marks: columns.map((column) => column.markOf?.(item) ?? column.cell(item)),
  }));
  return { key, columns, items: rows };
}

/** Returns `{ [key]: items }` as JSON or YAML, or the items as a table. Empty for a table without rows. */
export async function listText<T>(terminal: Terminal, output: Output, list: List<T>): Promise<string> {
  return rowsText(terminal, output, toRows(list));
}

/** `listText` of rendered rows. */
export async function rowsText(terminal: Terminal, output: Output, rows: Rows): Promise<string> {
  const { key, items } = rows;
  const data = await dataText(output, { [key]: items.map(({ value }) => value) });
  if (data !== undefined) return data;
  if (items.length === 0) return '';
  if (output === 'name') return items.map(({ name }) => `${withoutControls(fullName(key, name))}\n`).join('');
  const { head, lines } = tableOf(terminal, output, rows);
  return `${[head, ...lines].join('\n')}\n`;
}

/** Returns the name with its kind: `slot/primary` for the key `slots`. */
export const fullName = (key: string, name: string): string => `${key.replace(/s$/, '')}/${name}`;

export function tableOf(terminal: Terminal, output: Output, { columns, items }: Rows) {
  const shown = columns.flatMap((column, index) => (output === 'wide' || column.wide !== true ? [index] : []));
  const [head = '', ...lines] = tableLines(
    shown.map((index) => columns[index]?.title ?? ''),
    items.map(({ cells }) => shown.map((index) => cells[index] ?? '')),
    output === 'wide' ? Number.POSITIVE_INFINITY : terminal.columns,
    (text) => terminal.paint('bold', text),
  );
  return { head, lines };
}

/** Returns text of the service as a table cell: one line without control characters, `-` if empty. */
export function cellText(text: string | null | undefined): string {
  return text === null || text === undefined || text === '' ? '-' : withoutControls(text).replaceAll(/\s+/g, ' ');
}

const GAP = '  ';
/** Below this width, a truncated column would be useless, so the terminal wraps lines. */
const MIN_LAST_COLUMN = 12;

/**
 * Returns aligned lines, the head first. `columns`: width of the terminal; `Infinity` truncates nothing. The last
 * column gets the remaining width. Cells may contain colours.
 */
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

const width = (text: string): number => stripVTControlCharacters(text).length;

const cut = (text: string, room: number): string => (width(text) <= room ? text : `${stripVTControlCharacters(text).slice(0, room - 1)}…`);

/** `6.1 GiB`; `-` if unknown. */
export const sizeText = (bytes: number | null | undefined): string => (bytes === null || bytes === undefined ? '-' : formatSize(bytes));

/** `42s`, `5m`, `3h` or `12d` since an ISO time; `-` if unknown. `now`: Unix milliseconds. */
export function ageText(since: string | null | undefined, now: number): string {
  const at = Date.parse(since ?? '');
  return Number.isNaN(at) ? '-' : secondsText(Math.max(0, Math.round((now - at) / 1000)));
}

/** `42s`, `5m`, `3h` or `12d`. */
export function secondsText(seconds: number): string {
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Undefined if no capture runs. */
export function captureNotice(captures = 0): string | undefined {
  if (captures === 0) return undefined;
  return `Bodies of requests are recorded by ${captures === 1 ? 'a capture' : `${captures} captures`}: "svcctl capture list" shows of whom`;
}
