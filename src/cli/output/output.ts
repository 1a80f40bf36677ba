/** One listing, in the form that `-o` asks for. */
import { usageFailure } from './exit-codes.ts';
import { printTable } from './table.ts';
import { harmless, type Terminal } from './terminal.ts';

export const OUTPUTS = ['table', 'wide', 'json', 'yaml'] as const;
export type Output = (typeof OUTPUTS)[number];

/** A column of a table; `wide` ones stand in `-o wide` only. */
export interface Column<T> {
  readonly title: string;
  readonly wide?: true;
  cell(item: T): string;
}

export function outputOf(text: string | undefined): Output {
  const found = OUTPUTS.find((output) => output === (text ?? 'table'));
  if (found === undefined) throw usageFailure(`Use one of ${OUTPUTS.join(', ')} for -o, not "${text}"`);
  return found;
}

/** Prints `{ [key]: items }` as JSON or YAML, or the items as a table. */
export async function printList<T>(
  terminal: Terminal,
  output: Output,
  list: { readonly key: string; readonly items: readonly T[]; readonly columns: readonly Column<T>[]; readonly empty: string },
): Promise<void> {
  if (output === 'json') return void terminal.line(JSON.stringify({ [list.key]: list.items }, undefined, 2));
  if (output === 'yaml') {
    const { stringify } = await import('yaml');
    return terminal.write(stringify({ [list.key]: list.items }));
  }
  if (list.items.length === 0) return void terminal.note(list.empty);
  const columns = list.columns.filter((column) => output === 'wide' || column.wide !== true);
  printTable(
    terminal,
    columns.map((column) => column.title),
    list.items.map((item) => columns.map((column) => column.cell(item))),
    output === 'wide' ? Number.POSITIVE_INFINITY : terminal.columns,
  );
}

/** Text of the service in a cell: one line, nothing that steers the terminal. */
export function cellText(text: string | null | undefined): string {
  return text === null || text === undefined || text === '' ? '-' : harmless(text).replaceAll(/\s+/g, ' ');
}
