/** Results in the format that `-o` asks for. */
import { tableLines } from './table.ts';
import { withoutControls, type Terminal } from './terminal.ts';

export const OUTPUTS = ['table', 'wide', 'json', 'yaml'] as const;
export type Output = (typeof OUTPUTS)[number] | 'name';

export interface Column<T> {
  readonly title: string;
  /** Shown with `-o wide` only. */
  readonly wide?: true;
  /** Changes as time passes, so that `--watch` ignores it. */
  readonly moves?: true;
  cell(item: T): string;
  /** For `--watch`: what must differ for the cell to count as changed. Default: the cell. */
  markOf?(item: T): string;
}

export interface List<T> {
  /** The key of the items in JSON and YAML. */
  readonly key: string;
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  /** For `-o name`, where the verb has it. */
  readonly nameOf?: (item: T) => string;
}

/** A list with its cells, of whatever its items are. */
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
  /** One for each column: what must differ for the cell to count as changed. */
  readonly marks: readonly string[];
}

/** Returns the value as JSON or YAML, or undefined if the format is one for people. */
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
  return rowsText(terminal, output, '', toRows(list));
}

/** `kind` is that of the items, for `-o name`: `slot`. */
export async function rowsText(terminal: Terminal, output: Output, kind: string, rows: Rows): Promise<string> {
  const { key, items } = rows;
  const data = await dataText(output, { [key]: items.map(({ value }) => value) });
  if (data !== undefined) return data;
  if (items.length === 0) return '';
  if (output === 'name') return items.map(({ name }) => `${withoutControls(`${kind}/${name}`)}\n`).join('');
  const { head, lines } = tableOf(terminal, output, rows);
  return `${[head, ...lines].join('\n')}\n`;
}

export function tableOf(
  terminal: Terminal,
  output: Output,
  { columns, items }: Rows,
): { readonly head: string; readonly lines: readonly string[] } {
  const shown = columns.flatMap((column, index) => (output === 'wide' || column.wide !== true ? [index] : []));
  const [head = '', ...lines] = tableLines(
    shown.map((index) => columns[index]?.title ?? ''),
    items.map(({ cells }) => shown.map((index) => cells[index] ?? '')),
    output === 'wide' ? Number.POSITIVE_INFINITY : terminal.columns,
    (text) => terminal.paint('bold', text),
  );
  return { head, lines };
}

/** Text of the service for a table cell: a single line without control characters; `-` if there is none. */
export function cellText(text: string | null | undefined): string {
  return text === null || text === undefined || text === '' ? '-' : withoutControls(text).replaceAll(/\s+/g, ' ');
}
