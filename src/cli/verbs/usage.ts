/** `svcctl usage`: what callers have used, as a table, as JSON or YAML, or as CSV for spreadsheets. */
import { isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import type { Answer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { cellText, listText, type Column, type Output } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export interface UsageOptions extends ServiceOptions {
  readonly by: string;
  readonly since: string;
  readonly until?: string;
  readonly output: Output | 'csv';
}

type Row = Answer<'usage'>['usage'][number];

export async function runUsage(cli: Cli, { by, since, until, output, ...service }: UsageOptions): Promise<void> {
  const { terminal } = cli;
  const now = cli.now();
  const query = new URLSearchParams({ by, since: timeOf(since, now, '--since') });
  if (until !== undefined) query.set('until', timeOf(until, now, '--until'));
  const client = await cli.connect(service);
  const { usage: items, problem } = await client.request('GET', `/api/usage?${query.toString()}`, 'usage');
  if (problem !== undefined && problem !== null) terminal.note(withoutControls(problem));
  if (output === 'csv') return await terminal.write(csvText(items));
  await terminal.write(await listText(terminal, output, { key: 'usage', items, columns: columnsOf(by.split(','), items) }));
  if (items.length === 0 && output === 'table') terminal.note(`No requests since ${since}`);
}

/** A duration before now, or a time. */
function timeOf(text: string, now: number, flag: string): string {
  const at = isDuration(text) ? now - parseDurationMs(text) : Date.parse(text);
  if (Math.abs(at) < MOST_MS) return new Date(at).toISOString();
  throw usageFailure(
    `Invalid ${flag} "${text}"`,
    'Write a duration such as "7d", or a time such as "2027-01-31" or "2027-01-31T12:00:00Z"',
  );
}

/** Year 9999 and before. */
const MOST_MS = Date.UTC(10_000, 0);

/** Columns of sound, images, loads and cost only where there is some. */
function columnsOf(by: readonly string[], rows: readonly Row[]): readonly Column<Row>[] {
  const groups: readonly (readonly [string, Column<Row>])[] = [
    ['hour', { title: 'HOUR', cell: ({ time }) => cellText(time?.slice(0, 'yyyy-mm-ddThh:mm'.length)) }],
    ['day', { title: 'DAY', cell: ({ time }) => cellText(time?.slice(0, 'yyyy-mm-dd'.length)) }],
    ['token', { title: 'CALLER', cell: ({ caller, label }) => cellText(label ?? caller) }],
    ['slot', { title: 'SLOT', cell: ({ slot }) => cellText(slot) }],
    ['model', { title: 'MODEL', cell: ({ model }) => cellText(model) }],
  ];
  const asked = groups.filter(([word]) => by.includes(word) && !(word === 'day' && by.includes('hour')));
  const extra = EXTRAS.filter(({ cell }) => rows.some((row) => cell(row) !== ''));
  return [...asked.map(([, column]) => column), ...COUNTS, ...extra];
}

const COUNTS: readonly Column<Row>[] = [
  { title: 'REQUESTS', cell: ({ requests }) => String(requests) },
  { title: 'ERRORS', cell: ({ errors }) => String(errors) },
  { title: 'INPUT', cell: (row) => tokensText(row.input_tokens, row) },
  { title: 'CACHED', cell: ({ cached_tokens: tokens }) => String(tokens) },
  { title: 'OUTPUT', cell: (row) => tokensText(row.output_tokens, row) },
  { title: 'QUEUE', wide: true, cell: ({ queue_seconds: seconds }) => `${seconds.toFixed(1)}s` },
  { title: 'BUSY', cell: ({ busy_seconds: seconds }) => `${seconds.toFixed(1)}s` },
];

const EXTRAS: readonly Column<Row>[] = [
  { title: 'AUDIO', cell: ({ audio_seconds: seconds }) => (seconds === null || seconds === undefined ? '' : `${seconds.toFixed(1)}s`) },
  { title: 'IMAGES', cell: ({ images }) => String(images ?? '') },
  {
    title: 'ENERGY',
    wide: true,
    cell: ({ energy_wh: energy }) => (energy === null || energy === undefined ? '' : `~${amountText(energy)}Wh`),
  },
  { title: 'LOADS', wide: true, cell: ({ loads = 0 }) => (loads === 0 ? '' : String(loads)) },
  { title: 'EVICTIONS', wide: true, cell: ({ evictions = 0 }) => (evictions === 0 ? '' : String(evictions)) },
  {
    title: 'COST',
    cell: (row) => {
      const amounts = row.cost ?? [];
      return amounts.map(({ currency, amount }) => `${tokensText(amountText(amount), row)} ${withoutControls(currency)}`).join(' + ');
    },
  },
];

/** `~`: some were guessed. */
const tokensText = (tokens: number | string, { estimated_requests: estimated }: Row): string => `${estimated > 0 ? '~' : ''}${tokens}`;

/** Cents, or two digits of less than that. */
const amountText = (amount: number): string =>
  amount >= 0.01 || amount === 0 ? amount.toFixed(2) : amount.toFixed(Math.min(6, 1 - Math.floor(Math.log10(amount))));

const CSV_COLUMNS = [
  'time',
  'caller',
  'label',
  'slot',
  'model',
  'requests',
  'errors',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'estimated_requests',
  'queue_seconds',
  'busy_seconds',
  'audio_seconds',
  'images',
  'energy_wh',
  'loads',
  'evictions',
] as const satisfies readonly (keyof Row)[];

/** https://www.rfc-editor.org/rfc/rfc4180. A column for each currency. */
function csvText(rows: readonly Row[]): string {
  const currencies = [...new Set(rows.flatMap(({ cost = [] }) => cost.map(({ currency }) => currency)))].toSorted();
  const lines = [
    [...CSV_COLUMNS, ...currencies.map((currency) => csvCell(`cost_${currency}`))],
    ...rows.map((row) => [
      ...CSV_COLUMNS.map((column) => csvCell(row[column])),
      ...currencies.map((wanted) => csvCell(row.cost?.find(({ currency }) => currency === wanted)?.amount)),
    ]),
  ];
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}

/** Spreadsheets take a text that begins like a formula for one. */
function csvCell(value: string | number | null | undefined): string {
  if (typeof value === 'number') return String(value);
  const text = withoutControls(value ?? '');
  const safe = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
