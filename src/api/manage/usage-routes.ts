/** How much each caller has used, by hours, days, slots and models. */
import { z } from 'zod';
import type { TokenManager } from '../../auth/manage-tokens.ts';
import { UsageReport } from '../../schema/status/resource-answers.ts';
import { GROUPINGS, HOUR_MS, hourOf, NANOS, sumUsage, type Grouping, type UsageSum } from '../../usage/decide/usage-rows.ts';
import type { UsageRecorder } from '../../usage/usage-recorder.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { labelsOf } from './decide/find-caller.ts';

/** A year by day for more than a hundred callers: about 15 MB of JSON. */
const MOST_ROWS = 50_000;
const DEFAULT_HOURS = 30 * 24;

const Time = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);
const Word = `(?:${GROUPINGS.join('|')})`;
const UsageQuery = z.strictObject({
  since: Time.optional().describe('Beginning, rounded down to the hour. Default: 30 days before `until`'),
  until: Time.optional().describe('End, rounded up to the hour. Default: now'),
  by: z
    .string()
    .regex(new RegExp(`^${Word}(?:,${Word})*$`), `Use words of ${GROUPINGS.join(', ')}, separated by commas`)
    .default('token')
    .describe(`What sums are for: ${GROUPINGS.map((word) => `\`${word}\``).join(', ')}, or several of them, separated by commas`),
});

export interface UsageRouteDeps {
  /** Undefined where usage is not recorded. */
  readonly usage: Pick<UsageRecorder, 'query' | 'sources'> | undefined;
  readonly tokens: Pick<TokenManager, 'list'>;
  readonly wallNow: () => number;
}

export function createUsageRoute({ usage, tokens, wallNow }: UsageRouteDeps): DocumentedRoute {
  return defineRoute('GET', '/api/usage', 'all', {
    tag: 'system',
    summary: 'Requests, tokens, times and cost of each caller, slot and model; never what requests contained',
    input: z.object({ query: UsageQuery }),
    answers: { 200: json('Sums of a range of hours', UsageReport) },
    async handler({ query }) {
      const to = Math.ceil((query.until === undefined ? wallNow() : Date.parse(query.until)) / HOUR_MS);
      const from = query.since === undefined ? to - DEFAULT_HOURS : hourOf(Date.parse(query.since));
      if (from >= to) throw new ApiError('request.invalid', '"since" is not before "until": use an earlier time', { param: 'since' });
      const by = GROUPINGS.filter((word) => query.by.split(',').includes(word));
      const question = { from, to, by, most: MOST_ROWS };
      const { sums, problem } = (await usage?.query(question)) ?? { sums: [], problem: NOT_RECORDED };
      if (sums.length > MOST_ROWS)
        throw new ApiError('request.invalid', `The answer has more than ${MOST_ROWS} rows: ask for fewer hours, or group by less`, {
          param: 'by',
        });
      const labels = labelsOf(tokens.list());
      const sources = (usage?.sources?.() ?? []).map(({ source, problem: why }) => ({ source, problem: why ?? null }));
      const body = { since: timeOf(from), until: timeOf(to), problem: problem ?? null, energy_sources: sources };
      return { status: 200, body: { ...body, usage: viewSums(sums, by, labels) } };
    },
  });
}

const NOT_RECORDED = 'Usage cannot be read: "SVC_USAGE" is "off", or the service runs in a cluster without "SVC_PROMETHEUS_URL"';

const timeOf = (hour: number): string => new Date(hour * HOUR_MS).toISOString();

function viewSums(sums: readonly UsageSum[], by: readonly Grouping[], labels: ReadonlyMap<string, string>) {
  const rows: ReturnType<typeof viewSum>[] = [];
  for (const parts of partsOfRows(sums)) for (const sum of addUp(parts, by)) rows.push(viewSum(sum, labels, costsOf(parts)));
  return rows;
}

/** Sums that differ in nothing but their currency follow each other and are one row. */
function* partsOfRows(sums: readonly UsageSum[]): Generator<readonly UsageSum[]> {
  let parts: UsageSum[] = [];
  for (const sum of sums) {
    if (parts[0] !== undefined && !isSameRow(parts[0], sum)) {
      yield parts;
      parts = [];
    }
    parts.push(sum);
  }
  if (parts.length > 0) yield parts;
}

const isSameRow = (one: UsageSum, other: UsageSum): boolean =>
  one.hour === other.hour && one.caller === other.caller && one.slot === other.slot && one.model === other.model;

/** Nearly all rows have one currency, and there may be 50,000. */
function addUp(parts: readonly UsageSum[], by: readonly Grouping[]): readonly UsageSum[] {
  if (parts.length === 1) return parts;
  const alike = parts.map((part) => ({ ...part, currency: '' }));
  return sumUsage(alike, by);
}

/** In millionths: smaller amounts are no money, and would be printed with many digits. */
function costsOf(parts: readonly UsageSum[]) {
  const costs = parts.filter(({ currency }) => currency !== '');
  return costs.map(({ currency, nanos }) => ({ currency, amount: Math.round((nanos / NANOS) * MILLION) / MILLION }));
}

const MILLION = 1_000_000;
/** Millijoules of a watt-hour. */
const MJ_OF_WH = 3_600_000;

function viewSum(sum: UsageSum, labels: ReadonlyMap<string, string>, cost: ReturnType<typeof costsOf>) {
  const { hour, caller = null, slot = null, model = null, requests, errors } = sum;
  return {
    time: hour === undefined ? null : timeOf(hour),
    caller,
    label: labels.get(caller ?? '') ?? null,
    slot,
    model,
    requests,
    errors,
    input_tokens: sum.input,
    cached_tokens: sum.cached,
    output_tokens: sum.output,
    estimated_requests: sum.estimated,
    queue_seconds: sum.queueMs / 1000,
    busy_seconds: sum.busyMs / 1000,
    audio_seconds: sum.audioMs === 0 ? null : sum.audioMs / 1000,
    images: sum.images === 0 ? null : sum.images,
    energy_wh: sum.milliJoules === 0 ? null : Math.round((sum.milliJoules / MJ_OF_WH) * MILLION) / MILLION,
    cost,
    loads: sum.loads,
    evictions: sum.evictions,
  };
}
