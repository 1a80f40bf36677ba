/** How much each caller has used, by hours, days, slots and models. */
import { z } from 'zod';
import type { TokenManager } from '../../auth/manage-tokens.ts';
import { GROUPINGS, HOUR_MS, hourOf, OTHERS, type Grouping, type UsageSum } from '../../usage/decide/usage-rows.ts';
import type { UsageRecorder } from '../../usage/usage-recorder.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';

/** A year by day for more than a hundred callers: about 15 MB of JSON. */
const MOST_ROWS = 50_000;
const DEFAULT_HOURS = 30 * 24;
const TOKEN = 'token:';

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

const Count = z.number().min(0);
export const UsageReport = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  problem: z.string().nullable().describe('Why something is missing, or not stored. null: nothing is'),
  usage: z
    .array(
      z.object({
        time: z.iso.datetime().nullable().describe('Beginning of the hour or day (UTC). null unless grouped by one'),
        caller: z
          .string()
          .nullable()
          .describe(`\`token:<id>\`, \`user:<name>\`, \`anyone\`, \`local\`, \`wyoming\`, \`${OTHERS}\`; null unless grouped by token`),
        label: z.string().nullable().describe('Label of the token; null for other callers and for tokens that were revoked'),
        slot: z.string().nullable().describe('Empty for requests that reached none; null unless grouped by slot'),
        model: z.string().nullable().describe('That of the slot at the time; null unless grouped by model'),
        requests: Count,
        errors: Count.describe('Requests with a status from 400, also those whose client left'),
        input_tokens: Count.describe('Tokens of prompts, also cached ones'),
        cached_tokens: Count.describe('Tokens of prompts that the server had computed before'),
        output_tokens: Count,
        estimated_requests: Count.describe('Requests whose output tokens were counted by events, and whose prompts were not counted'),
        queue_seconds: Count.describe('How long requests waited for their slot'),
        busy_seconds: Count.describe('How long servers worked on requests, added up'),
      }),
    )
    .describe('By time, then by caller, slot and model'),
});

export interface UsageRouteDeps {
  /** Undefined where usage is not recorded. */
  readonly usage: Pick<UsageRecorder, 'query'> | undefined;
  readonly tokens: Pick<TokenManager, 'list'>;
  readonly wallNow: () => number;
}

export function createUsageRoute({ usage, tokens, wallNow }: UsageRouteDeps): DocumentedRoute {
  return defineRoute('GET', '/api/usage', 'all', {
    tag: 'system',
    summary: 'Requests, tokens and times of each caller, slot and model; never what requests contained',
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
      const labels = new Map(tokens.list().map(({ id, label }) => [TOKEN + id, label]));
      const body = { since: timeOf(from), until: timeOf(to), problem: problem ?? null, usage: sums.map((sum) => viewSum(sum, by, labels)) };
      return { status: 200, body };
    },
  });
}

const NOT_RECORDED = 'Usage is not recorded: "SVC_USAGE" is "off", or the service runs in a cluster';

const timeOf = (hour: number): string => new Date(hour * HOUR_MS).toISOString();

function viewSum(sum: UsageSum, by: readonly Grouping[], labels: ReadonlyMap<string, string>) {
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
  };
}
