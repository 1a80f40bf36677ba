/** Prints a list that is read again and again: everything once, and then only what has changed. A terminal and a pipe get the same lines. */
import { rowsText, tableOf, type Output, type Row, type Rows } from './output.ts';
import type { Terminal } from './terminal.ts';

/** Returns a function that is called with the list each time it was read. `kind` is that of its items: `slot`. */
export function createWatch(terminal: Terminal, output: Output, kind: string): (rows: Rows) => Promise<void> {
  let before: ReadonlyMap<string, string> | undefined;
  let hasHead = false;
  return async (rows) => {
    const isTable = output === 'table' || output === 'wide';
    const now = new Map(rows.items.map((item) => [item.name, fingerprint(rows, item, output)]));
    const changed = rows.items.filter(({ name }) => before?.get(name) !== now.get(name));
    const gone = [...(before?.keys() ?? [])].filter((name) => !now.has(name));
    before = now;
    if (changed.length > 0 && isTable) {
      // The whole table decides the widths, so that most lines stay aligned with the ones above.
      const { head, lines } = tableOf(terminal, output, rows);
      const shown = rows.items.flatMap((item, index) => (changed.includes(item) ? (lines[index] ?? []) : []));
      await terminal.write(`${[...(hasHead ? [] : [head]), ...shown].join('\n')}\n`);
      hasHead = true;
    } else if (changed.length > 0) await terminal.write(await rowsText(terminal, output, kind, { ...rows, items: changed }));
    for (const name of gone) terminal[isTable ? 'line' : 'note'](`${kind}/${name} deleted`);
  };
}

/** What must differ for an item to count as changed. An age that grows by itself is no change. */
function fingerprint({ columns }: Rows, { value, marks }: Row, output: Output): string {
  if (output === 'name') return '';
  if (output === 'json' || output === 'yaml') return JSON.stringify(value);
  return JSON.stringify(
    marks.filter((_mark, index) => columns[index]?.moves !== true && (output === 'wide' || columns[index]?.wide !== true)),
  );
}
