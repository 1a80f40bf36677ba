/** Results in the format that `-o` asks for. */
import { tableLines } from './table.ts';
import { withoutControls, type Terminal } from './terminal.ts';

export const OUTPUTS = ['table', 'wide', 'json', 'yaml'] as const;
export type Output = (typeof OUTPUTS)[number];

export interface Column<T> {
  readonly title: string;
  /** Shown with `-o wide` only. */
  readonly wide?: true;
  cell(item: T): string;
}

export interface List<T> {
  /** The key of the items in JSON and YAML. */
  readonly key: string;
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
}

/** Returns the value as JSON or YAML, or undefined if the format is one for people. */
export async function dataText(output: Output, value: object): Promise<string | undefined> {
  if (output === 'json') return `${JSON.stringify(value, undefined, 2)}\n`;
  return output === 'yaml' ? (await import('yaml')).stringify(value) : undefined;
}

/** Returns `{ [key]: items }` as JSON or YAML, or the items as a table. Empty for a table without rows. */
export async function listText<T>(terminal: Terminal, output: Output, { key, items, columns }: List<T>): Promise<string> {
  const data = await dataText(output, { [key]: items });
  if (data !== undefined) return data;
  if (items.length === 0) return '';
  const shown = columns.filter((column) => output === 'wide' || column.wide !== true);
  const lines = tableLines(
    shown.map((column) => column.title),
    items.map((item) => shown.map((column) => column.cell(item))),
    output === 'wide' ? Number.POSITIVE_INFINITY : terminal.columns,
    (text) => terminal.paint('bold', text),
  );
  return `${lines.join('\n')}\n`;
}

/** Text of the service for a table cell: a single line without control characters; `-` if there is none. */
export function cellText(text: string | null | undefined): string {
  return text === null || text === undefined || text === '' ? '-' : withoutControls(text).replaceAll(/\s+/g, ' ');
}
