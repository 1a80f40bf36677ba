/** Reads usage from Prometheus, which adds up the metrics of all replicas in a cluster. */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import { readBody } from '../platform/read-body.ts';
import { shorten } from '../schema/words/nearest-word.ts';
import { NANOS, noCounts, sumUsage, type Grouping, type HourRange, type UsageCounts, type UsageSum } from './decide/usage-rows.ts';
import type { UsageAnswer, UsageRecorder } from './usage-recorder.ts';

const HOUR_SECONDS = 3600;
const DAY_HOURS = 24;
const MS = 1000;

type Scaled = readonly [count: keyof UsageCounts, scale: number];
/** `kinds`: by the value of the label `kind`; empty where the metric has no such label. */
interface Source {
  readonly metric: string;
  readonly kinds: Readonly<Record<string, Scaled>>;
}

export const SOURCES: readonly Source[] = [
  { metric: 'svc_usage_requests_total', kinds: { '': ['requests', 1] } },
  { metric: 'svc_usage_errors_total', kinds: { '': ['errors', 1] } },
  { metric: 'svc_usage_estimated_requests_total', kinds: { '': ['estimated', 1] } },
  { metric: 'svc_usage_tokens_total', kinds: { input: ['input', 1], cached: ['cached', 1], output: ['output', 1] } },
  { metric: 'svc_usage_seconds_total', kinds: { queue: ['queueMs', MS], busy: ['busyMs', MS], audio: ['audioMs', MS] } },
  { metric: 'svc_usage_images_total', kinds: { '': ['images', 1] } },
  { metric: 'svc_usage_cost_total', kinds: { '': ['nanos', NANOS] } },
  { metric: 'svc_usage_loads_total', kinds: { '': ['loads', 1] } },
  { metric: 'svc_usage_evictions_total', kinds: { '': ['evictions', 1] } },
];
/** For all metrics together. `svcctl` waits for 30 s. */
const TIMEOUT_MS = 20_000;
/** Sums of 50,000 rows, which are the most that the API answers with. */
const ANSWER_BYTES = 8 * 1024 * 1024;
const MESSAGE_CHARACTERS = 300;
const NO_MODELS = 'Usage in a cluster is read from Prometheus, which has no models: group it by token, slot, day or hour';

/** `namespace`: the series of this installation have it as a label; undefined: all series count. */
export function createPrometheusUsage(url: string, namespace: string | undefined, timeoutMs = TIMEOUT_MS): UsageRecorder {
  const base = url.replace(/\/+$/, '');
  const selector = namespace === undefined ? '' : `{namespace=${JSON.stringify(namespace)}}`;
  const failed = (why: string): UsageAnswer => ({ sums: [], problem: `Prometheus cannot be read ("SVC_PROMETHEUS_URL"): ${why}` });
  return {
    async query({ by, from, to }) {
      if (by.includes('model')) return { sums: [], problem: NO_MODELS };
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const sums: UsageSum[] = [];
        // One after the other, so that not all of the answers are in memory.
        for (const source of SOURCES) {
          const answer = await readAnswer(base + pathOf(source, { from, to }, by, selector), signal);
          const parsed = parseAnswer(source, answer, { from, to, by });
          if (!parsed.ok) return failed(parsed.message);
          sums.push(...parsed.sums);
        }
        return { sums: sumUsage(sums, by), problem: undefined };
      } catch (error) {
        return failed(signal.aborted ? `it did not answer within ${timeoutMs / 1000} s` : messageOf(causeOf(error)));
      }
    },
    note: () => undefined,
    write: () => undefined,
    close: async () => undefined,
  };
}

interface JsonAnswer {
  readonly status: number;
  /** Undefined if it was no JSON. */
  readonly body: unknown;
}

async function readAnswer(url: string, signal: AbortSignal): Promise<JsonAnswer> {
  const { status, body } = await fetch(url, { signal, redirect: 'manual' });
  return { status, body: body === null ? undefined : parseJson(await readBody(Readable.fromWeb(body), ANSWER_BYTES)) };
}

/** `fetch` says why in the cause only. */
const causeOf = (error: unknown): unknown => (typeof error === 'object' && error !== null && Reflect.get(error, 'cause')) || error;

/** Path and query under the URL of Prometheus. `selector`: of the series of this installation. */
function pathOf({ metric }: Source, { from, to }: HourRange, by: readonly Grouping[], selector: string): string {
  const step = stepHours(by);
  const labels = ['kind', 'currency', ...(by.includes('token') ? ['caller'] : []), ...(by.includes('slot') ? ['slot'] : [])];
  const query = `sum by (${labels.join(', ')}) (increase(${metric}${selector}[${step ?? to - from}h]))`;
  if (step === undefined) return `/api/v1/query?${new URLSearchParams({ query, time: String(to * HOUR_SECONDS) }).toString()}`;
  // A sample is for the step before it.
  const start = String((Math.floor(from / step) + 1) * step * HOUR_SECONDS);
  const end = String(Math.ceil(to / step) * step * HOUR_SECONDS);
  return `/api/v1/query_range?${new URLSearchParams({ query, start, end, step: String(step * HOUR_SECONDS) }).toString()}`;
}

const stepHours = (by: readonly Grouping[]): number | undefined => (by.includes('hour') ? 1 : by.includes('day') ? DAY_HOURS : undefined);

const Sample = z.tuple([z.number(), z.string()]);
const Series = z.object({
  metric: z.record(z.string(), z.string()),
  value: Sample.optional(),
  values: z.array(Sample).optional(),
});
/** https://prometheus.io/docs/prometheus/latest/querying/api/ */
const Answer = z.object({ status: z.literal('success'), data: z.object({ result: z.array(Series) }) });
const Refused = z.object({ error: z.string() });

type Parsed = { readonly ok: true; readonly sums: readonly UsageSum[] } | { readonly ok: false; readonly message: string };

/** Numbers that cannot be are left out, and so are samples of other hours. */
function parseAnswer({ kinds }: Source, { status, body }: JsonAnswer, { from, to, by }: HourRange & { by: readonly Grouping[] }): Parsed {
  const parsed = Answer.safeParse(body);
  if (!parsed.success) {
    const message = Refused.safeParse(body).data?.error ?? `its answer with status ${status} has an unknown form`;
    return { ok: false, message: shorten(message, MESSAGE_CHARACTERS) };
  }
  const step = stepHours(by);
  const scales = new Map(Object.entries(kinds));
  const sums = parsed.data.data.result.flatMap(({ metric, value, values = value === undefined ? [] : [value] }) => {
    const [count, scale] = scales.get(metric['kind'] ?? '') ?? [];
    if (count === undefined || scale === undefined) return [];
    const { caller = '', slot = '', currency = '' } = metric;
    return values.flatMap(([at, text]) => {
      const amount = Math.min(Math.round(Number(text) * scale), Number.MAX_SAFE_INTEGER);
      const hour = step === undefined ? from : Math.round(at / HOUR_SECONDS) - step;
      if (!(amount > 0) || hour <= from - (step ?? 1) || hour >= to) return [];
      return [{ ...noCounts(), ...(step === undefined ? {} : { hour }), caller, slot, currency, [count]: amount }];
    });
  });
  return { ok: true, sums };
}
