/** Requests for display: the newest ones, filtered, and as a table for a spreadsheet. Pure. */
import type { RequestEntries } from '../types.ts';

export type RequestRow = RequestEntries['requests'][number];
export type Shown = 'all' | 'troubled' | 'failed';

/** As many as the service remembers of all requests. */
const MOST_KEPT = 1000;

/** Both lists have the newest first. */
export function withNewer(known: readonly RequestRow[], arrived: readonly RequestRow[]): readonly RequestRow[] {
  const newest = known[0]?.number ?? -1;
  return [...arrived.filter(({ number }) => number > newest), ...known].slice(0, MOST_KEPT);
}

/** `search`: words that all occur in the caller, slot, path, status, code, cause or id. */
export function isRequestShown(row: RequestRow, { shown, search }: { readonly shown: Shown; readonly search: string }): boolean {
  if (shown === 'failed' && row.because !== 'failed') return false;
  if (shown === 'troubled' && row.because === null) return false;
  const { caller, slot, route, status, code, why, id } = row;
  const text = [caller, slot, route, status, code, why?.cause, id].join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The part of the input that the server had in its cache: "93 %". Undefined if it is not known. */
export function cachedShare({ input_tokens: input, cached_tokens: cached }: Pick<RequestRow, 'input_tokens' | 'cached_tokens'>) {
  return input === null || cached === null || input === 0 ? undefined : `${Math.round((Math.min(cached, input) / input) * 100)} %`;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** By nearest rank. Failed requests do not count, as they may end early. Undefined where no value is known. */
export function percentilesOf(rows: readonly RequestRow[], read: (row: RequestRow) => number | null): Percentiles | undefined {
  const values = rows.flatMap((row) => (row.because === 'failed' ? [] : (read(row) ?? []))).toSorted((a, b) => a - b);
  const at = (share: number): number => values[Math.max(0, Math.ceil(values.length * share) - 1)] ?? 0;
  return values.length === 0 ? undefined : { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

const COLUMNS = [
  ['at', ({ at }) => at],
  ['id', ({ id }) => id],
  ['caller', ({ caller }) => caller],
  ['slot', ({ slot }) => slot],
  ['route', ({ route }) => route],
  ['status', ({ status }) => status],
  ['code', ({ code }) => code],
  ['seconds', ({ seconds }) => seconds],
  ['parked_seconds', (row) => row.parked_seconds],
  ['first_seconds', (row) => row.first_seconds],
  ['input_tokens', (row) => row.input_tokens],
  ['cached_tokens', (row) => row.cached_tokens],
  ['output_tokens', (row) => row.output_tokens],
  ['tokens_per_second', (row) => row.tokens_per_second],
  ['cause', ({ why }) => why?.cause ?? null],
] as const satisfies readonly (readonly [string, (row: RequestRow) => string | number | null])[];

/** RFC 4180. Times are in UTC. */
export function requestsCsv(rows: readonly RequestRow[]): string {
  const lines = [COLUMNS.map(([name]) => name), ...rows.map((row) => COLUMNS.map(([, read]) => cell(read(row))))];
  return lines.map((each) => `${each.join(',')}\r\n`).join('');
}

/**
 * A caller may choose its name, and spreadsheets run a text that begins like a formula.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
