/** `svcctl requests` and `svcctl audit`: what the service remembers of requests and of changes. */
import { sleep } from '../../platform/clock.ts';
import type { Answer } from '../connect/api-answers.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import { cellText, listText, rowsText, tableOf, toRows, type Column, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';

interface RequestsOptions extends OutputOptions {
  readonly slot?: string;
  readonly caller?: string;
  readonly failed?: boolean;
  readonly slow?: boolean;
  readonly limit: string;
  readonly follow?: boolean;
  readonly inFlight?: boolean;
  readonly cancel?: string;
}

type Listed = Answer<'requests'>['requests'][number];

const FOLLOW_MS = 500;
/** Lines above that the columns of the next ones are aligned with. */
const ALIGNED = 100;

/** Prints the newest at the end, as in a log. Runs until it is interrupted with `--follow`. */
export async function runRequests(cli: Cli, options: RequestsOptions): Promise<void> {
  const { terminal } = cli;
  const { slot, caller, failed, slow, limit, follow, output } = options;
  if (!/^[1-9][0-9]{0,3}$/.test(limit)) throw usageFailure(`Invalid --limit "${limit}": use a number from 1 to 1200`);
  const wanted = { ...(slot && { slot }), ...(caller && { caller }), ...(failed && { failed: '1' }), ...(slow && { slow: '1' }) };
  const client = await cli.connect(options);
  const read = async (more: Readonly<Record<string, string>>) =>
    await client.request('GET', `/api/requests?${new URLSearchParams({ ...wanted, ...more }).toString()}`, 'requests');
  if (options.cancel !== undefined) {
    await client.request('DELETE', `/api/requests/${encodeURIComponent(options.cancel)}`, 'anything');
    return terminal.note(`Request "${options.cancel}" is cancelled`);
  }
  const isTable = output === 'table' || output === 'wide';
  if (options.inFlight === true) {
    const { in_flight: items = [] } = await read({ limit: '1' });
    if (items.length === 0 && isTable) return terminal.note('No requests in flight');
    return await terminal.write(await listText(terminal, output, { key: 'requests', items, columns: RUNNING, nameOf: ({ id }) => id }));
  }
  const rowsOf = (items: readonly Listed[]) => toRows({ key: 'requests', items, columns: COLUMNS, nameOf: ({ id }) => id ?? '-' });
  let { requests, last } = await read({ limit });
  let above: readonly Listed[] = [];
  if (requests.length === 0 && follow !== true && isTable) terminal.note('No such requests since this gateway started');
  for (;;) {
    const added = requests.toReversed();
    const all = [...above, ...added].slice(-ALIGNED - added.length);
    if (isTable && added.length > 0) {
      const { head, lines } = tableOf(terminal, output, rowsOf(all));
      await terminal.write(`${[...(above.length === 0 ? [head] : []), ...lines.slice(-added.length)].join('\n')}\n`);
    } else if (added.length > 0 || follow !== true) await terminal.write(await rowsText(terminal, output, rowsOf(added)));
    if (follow !== true) return;
    above = all;
    await sleep(Math.max(FOLLOW_MS, client.pollMs));
    ({ requests, last } = await read({ after: String(last), limit: '1000' }));
  }
}

interface AuditOptions extends OutputOptions {
  readonly since?: string;
  readonly by?: string;
  readonly limit: string;
}

/** Prints the oldest first. */
export async function runAudit(cli: Cli, { since, by, limit, ...options }: AuditOptions): Promise<void> {
  const { terminal } = cli;
  if (!/^(?:[1-9][0-9]{0,2}|1000)$/.test(limit)) throw usageFailure(`Invalid --limit "${limit}": use a number from 1 to 1000`);
  const from = since === undefined ? {} : { since: beginOf(since, cli.now()) };
  const query = new URLSearchParams({ limit, ...from, ...(by === undefined ? {} : { by }) }).toString();
  const { changes } = await (await cli.connect(options)).request('GET', `/api/audit?${query}`, 'changes');
  const columns: readonly Column<Answer<'changes'>['changes'][number]>[] = [
    { title: 'WHEN', cell: ({ at }) => cellText(at) },
    { title: 'WHO', cell: ({ who }) => cellText(who) },
    { title: 'CALLER', cell: ({ caller }) => cellText(caller) },
    { title: 'ADDRESS', wide: true, cell: ({ address }) => cellText(address) },
    { title: 'REQUEST', wide: true, cell: ({ request_id: id }) => cellText(id) },
    { title: 'DID', cell: ({ message }) => cellText(message) },
  ];
  await terminal.write(await listText(terminal, options.output, { key: 'changes', items: changes.toReversed(), columns }));
  if (changes.length === 0 && (options.output === 'table' || options.output === 'wide')) terminal.note('No such changes');
}

/** A duration before now, or a time. */
function beginOf(text: string, now: number): string {
  const begin = isDuration(text) ? now - parseDurationMs(text) : Date.parse(text);
  if (begin >= 0) return new Date(begin).toISOString();
  throw usageFailure(`Invalid time "${text}"`, 'Write a duration such as "7d", or a time such as "2027-01-31T12:00:00Z"');
}

const secondsCell = (seconds: number | null | undefined): string => (seconds === null || seconds === undefined ? '-' : seconds.toFixed(2));
const countCell = (count: number | null | undefined): string => (count === null || count === undefined ? '-' : String(count));

const RUNNING: readonly Column<NonNullable<Answer<'requests'>['in_flight']>[number]>[] = [
  { title: 'ID', cell: ({ id }) => cellText(id) },
  { title: 'CALLER', cell: ({ caller }) => cellText(caller) },
  { title: 'SLOT', cell: ({ slot }) => cellText(slot) },
  { title: 'ROUTE', wide: true, cell: ({ route }) => cellText(route) },
  { title: 'STATE', cell: ({ state }) => cellText(state) },
  { title: 'SECONDS', cell: ({ seconds }) => secondsCell(seconds) },
];

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'ENDED', cell: ({ at }) => cellText(at) },
  { title: 'CALLER', cell: ({ caller }) => cellText(caller) },
  { title: 'SLOT', cell: ({ slot }) => cellText(slot) },
  { title: 'ROUTE', wide: true, cell: ({ route }) => cellText(route) },
  { title: 'ID', wide: true, cell: ({ id }) => cellText(id) },
  { title: 'STATUS', cell: ({ status, code }) => cellText(code ?? String(status)) },
  { title: 'SECONDS', cell: ({ seconds }) => secondsCell(seconds) },
  { title: 'QUEUE', cell: ({ parked_seconds: parked }) => secondsCell(parked) },
  { title: 'FIRST', cell: ({ first_seconds: first }) => secondsCell(first) },
  { title: 'IN', cell: ({ input_tokens: input }) => countCell(input) },
  { title: 'CACHED', cell: ({ cached_tokens: cached }) => countCell(cached) },
  { title: 'OUT', cell: ({ output_tokens: output }) => countCell(output) },
  { title: 'TOKENS/S', cell: ({ tokens_per_second: perSecond }) => countCell(perSecond && Math.round(perSecond * 10) / 10) },
  { title: 'WHY', cell: ({ why }) => cellText(why && `${why.cause}: ${why.message}`) },
];
