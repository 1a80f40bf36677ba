/** `svcctl get slots|models|pulls|providers|pods`. */
import { sleep } from '../../platform/clock.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { fullName, rowsText, tableOf, type Output, type OutputOptions, type Row, type Rows } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import { LISTINGS, type Listing } from './listings.ts';

/** Interval of `--watch`. */
const WATCH_MS = 500;
const MOST_IN_CHUNK = 10_000;

interface GetOptions extends OutputOptions {
  readonly watch?: boolean;
  readonly chunkSize: string;
}

/** Runs until it is interrupted with `--watch`. */
export async function runGet(cli: Cli, options: GetOptions, ...words: string[]): Promise<void> {
  const { listing, names } = parseTargets(words);
  const { terminal } = cli;
  const { output } = options;
  const chunkSize = Number(options.chunkSize);
  if (!Number.isInteger(chunkSize) || chunkSize < 1 || chunkSize > MOST_IN_CHUNK)
    throw usageFailure(`Invalid "--chunk-size": use a whole number from 1 to ${MOST_IN_CHUNK}`);
  const client = await cli.connect(options);
  const first = await listing.read(cli, client, chunkSize);
  checkNames(listing, first, names);
  if (first.items.length === 0) terminal.note(listing.empty);
  if (first.notice !== undefined) terminal.note(first.notice);
  if (options.watch !== true) return await terminal.write(await rowsText(terminal, output, select(first, names)));
  const watch = createWatch(terminal, output);
  for (let rows = first; ; rows = await listing.read(cli, client, chunkSize)) {
    await watch(select(rows, names));
    await sleep(Math.max(WATCH_MS, client.pollMs));
  }
}

type Targets = Readonly<{ listing: Listing; names: readonly string[] }>;

/** `slots`, `slot primary embed`, or `slot/primary slot/embed`. */
function parseTargets(words: readonly string[]): Targets {
  const pairs = words.map((word) => /^([a-z]+)\/(.+)$/.exec(word));
  const [kind = ''] = words;
  if (pairs.every((pair) => pair === null)) return { listing: listingOf(kind), names: words.slice(1) };
  const listing = listingOf(pairs[0]?.[1] ?? kind);
  const names = pairs.map((pair, index) => {
    if (pair !== null && listingOf(pair[1] ?? '') === listing) return pair[2] ?? '';
    throw usageFailure(`Invalid name "${words[index] ?? ''}": use "${listing.kind}/NAME", as all names of a command have the same kind`);
  });
  return { listing, names };
}

function listingOf(word: string): Listing {
  const found = Object.entries(LISTINGS).find(([plural, { kind }]) => word === plural || word === kind)?.[1];
  if (found === undefined) throw usageFailure(`Unknown kind "${word}": use one of ${Object.keys(LISTINGS).join(', ')}`);
  return found;
}

function checkNames({ kind }: Listing, { items }: Rows, names: readonly string[]): void {
  const missing = names.find((name) => !items.some((item) => item.name === name));
  if (missing === undefined) return;
  throw new CliFailure(`${kind.replace(/^./, (first) => first.toUpperCase())} "${missing}" not found`, {
    hint: `List the ${kind}s with "svcctl get ${kind}s"`,
  });
}

function select(rows: Rows, names: readonly string[]): Rows {
  return names.length === 0 ? rows : { ...rows, items: rows.items.filter(({ name }) => names.includes(name)) };
}

/** Returns a function that prints a whole list at its first call, and then its changes. */
export function createWatch(terminal: Terminal, output: Output): (rows: Rows) => Promise<void> {
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
    } else if (changed.length > 0) await terminal.write(await rowsText(terminal, output, { ...rows, items: changed }));
    for (const name of gone) terminal[isTable ? 'line' : 'note'](`${fullName(rows.key, name)} deleted`);
  };
}

/** The part of an item whose change counts. */
function fingerprint({ columns }: Rows, { value, marks }: Row, output: Output): string {
  if (output === 'name') return '';
  if (output === 'json' || output === 'yaml') return JSON.stringify(value);
  const counts = columns.map(({ moves, wide }) => moves !== true && (output === 'wide' || wide !== true));
  return JSON.stringify(marks.filter((_mark, index) => counts[index]));
}
