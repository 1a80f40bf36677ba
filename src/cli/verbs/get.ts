/** `svcctl get slots|models|pulls|providers|pods`: lists, and with `--watch` what changes in them. */
import { sleep } from '../../platform/clock.ts';
import type { Cli } from '../cli.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { rowsText, type Output, type Rows } from '../output/output.ts';
import { createWatch } from '../output/watch.ts';
import { LISTINGS, type Listing } from './listings.ts';

export interface GetOptions extends ServiceOptions {
  readonly output: Output;
  readonly watch?: boolean;
}

/** How often `--watch` reads the list. */
const WATCH_MS = 500;

/** With `--watch`, runs until it is interrupted. */
export async function runGet(cli: Cli, options: GetOptions, ...words: string[]): Promise<void> {
  const { listing, names } = parseTargets(words);
  const { terminal } = cli;
  const { output } = options;
  const client = await cli.connect(options);
  const first = await listing.read(cli, client);
  checkNames(listing, first, names);
  if (first.items.length === 0) terminal.note(listing.empty);
  if (options.watch !== true) {
    await terminal.write(await rowsText(terminal, output, listing.kind, select(first, names)));
    return;
  }
  const watch = createWatch(terminal, output, listing.kind);
  for (let rows = first; ; rows = await listing.read(cli, client)) {
    await watch(select(rows, names));
    await sleep(Math.max(WATCH_MS, client.pollMs));
  }
}

interface Targets {
  readonly listing: Listing;
  readonly names: readonly string[];
}

/** `slots`, `slot primary embed`, or `slot/primary slot/embed`. */
function parseTargets(words: readonly string[]): Targets {
  const pairs = words.map((word) => /^([a-z]+)\/(.+)$/.exec(word));
  const [kind = ''] = words;
  if (pairs.every((pair) => pair === null)) return { listing: listingOf(kind), names: words.slice(1) };
  const listing = listingOf(pairs[0]?.[1] ?? kind);
  const names = pairs.map((pair, index) => {
    if (pair !== null && listingOf(pair[1] ?? '') === listing) return pair[2] ?? '';
    throw usageFailure(`Write "${listing.kind}/NAME", not "${words[index] ?? ''}": one command lists things of one kind`);
  });
  return { listing, names };
}

function listingOf(word: string): Listing {
  const found = Object.entries(LISTINGS).find(([plural, { kind }]) => word === plural || word === kind)?.[1];
  if (found === undefined) throw usageFailure(`Use one of ${Object.keys(LISTINGS).join(', ')}, not "${word}"`);
  return found;
}

function checkNames({ kind }: Listing, { items }: Rows, names: readonly string[]): void {
  const missing = names.find((name) => !items.some((item) => item.name === name));
  if (missing === undefined) return;
  throw new CliFailure(`There is no ${kind} "${missing}"`, { hint: `List the ${kind}s with "svcctl get ${kind}s"` });
}

function select(rows: Rows, names: readonly string[]): Rows {
  return names.length === 0 ? rows : { ...rows, items: rows.items.filter(({ name }) => names.includes(name)) };
}
