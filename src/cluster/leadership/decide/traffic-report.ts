/**
 * The report of a replica about its traffic, in an annotation of its Lease. Times are ages, since clocks differ. New
 * demand is urgent: a request waits for a slot. Other changes only decide about idle slots, and a busy service must not
 * write to etcd for each request. Pure.
 */
import { z } from 'zod';
import type { TrafficFacts } from '../../../platform/decide/sum-traffic.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { LABEL_PREFIX } from '../../../schema/pod/kube-fields.ts';
import { SlotName, WorkloadId } from '../../../schema/words/names.ts';

export const TRAFFIC_ANNOTATION = `${LABEL_PREFIX}/traffic`;

export interface ReportedActivity {
  readonly count: number;
  /** Milliseconds since the last request, when the report was written. */
  readonly agoMs: number;
}

/** Slots and workloads in one report, some 200 KiB. All annotations of an object may have 256 KiB. */
const REPORTED = 2000;
/** At most 30 KiB. Users have e-mail addresses of any length, and usage cuts them as well. */
const REPORTED_CALLERS = 100;
const CALLER_CHARACTERS = 200;

const Count = z.int().min(0);
const Activity = z.tuple([Count, Count]).transform(([count, agoMs]): ReportedActivity => ({ count, agoMs }));

const activities = <Name extends z.ZodType<string, string>>(name: Name) =>
  z
    .record(z.string(), z.unknown())
    .transform((record) => Object.entries(record))
    .pipe(z.array(z.tuple([name, Activity])).max(REPORTED))
    .transform((entries): ReadonlyMap<z.output<Name>, ReportedActivity> => new Map(entries));

/** Whose request waits for longest, by slot. Absent in reports of earlier versions. */
const Callers = z
  .record(z.string(), z.string().max(CALLER_CHARACTERS))
  .catch({})
  .transform((callers): ReadonlyMap<string, string> => new Map(Object.entries(callers)));

/** Requests that ended on each workload of `use`, in its order, and how many failed. Earlier versions have none. */
const Results = z
  .array(z.tuple([Count, Count]))
  .max(REPORTED)
  .catch([]);

/** A later version may add keys. If it changes the meaning of these keys, it has another number. */
const Annotation = z
  .object({ version: z.literal(1), demand: activities(SlotName), use: activities(WorkloadId), callers: Callers, results: Results })
  .transform(({ demand, use, callers, results }) => {
    const found = results.length === use.size ? [...use.keys()].map((id, index) => [id, results[index] ?? NONE] as const) : [];
    return { demand, use, callers, results: withResults(found) };
  });

type RequestResults = readonly [ended: number, failed: number];
const NONE: RequestResults = [0, 0];
const withResults = (all: readonly (readonly [WorkloadId, RequestResults])[]): ReadonlyMap<WorkloadId, RequestResults> =>
  new Map(all.filter(([, [ended]]) => ended > 0));

export type TrafficReport = Readonly<z.output<typeof Annotation>>;

export const parseTraffic = (text: string | undefined): TrafficReport | undefined => Annotation.safeParse(parseJson(text ?? '')).data;

export function formatTraffic({ demand, use, callers, results }: TrafficReport): string {
  const table = { version: 1, demand: pairsOf(demand), use: pairsOf(use), callers: Object.fromEntries(callers) };
  // A table has keys such as "7" first, whatever their order was.
  const inOrder = Object.keys(table.use).map((key) => results.get(WorkloadId.parse(key)) ?? NONE);
  return JSON.stringify(results.size === 0 ? table : { ...table, results: inOrder });
}

const pairsOf = (activity: ReadonlyMap<string, ReportedActivity>): Readonly<Record<string, readonly number[]>> =>
  Object.fromEntries([...activity].map(([key, { count, agoMs }]) => [key, [count, agoMs]]));

export interface LastReport {
  readonly at: number;
  readonly report: TrafficReport;
}

/** Minimum time between two reports, unless there is new demand. */
export const COARSE_MS = 10_000;
export const LEAST_MS = 1000;
/** A report without any requests only shows that the replica exists, which no decision needs. */
const QUIET_RENEW_MS = 120_000;
/** The leader knows older activity, or the cluster was unreachable for so long that it no longer matters. */
const REPORTED_FOR_MS = 10 * 60_000;

/** `now` in monotonic milliseconds, like the facts. */
export function composeReport({ demand, workloads }: TrafficFacts, now: number): TrafficReport {
  const use = reportable(workloads, ({ inFlight, lastUsedAt }) => ({ count: inFlight, agoMs: ageOf(lastUsedAt, now) }));
  return {
    demand: reportable(demand, ({ waiting, lastAskedAt }) => ({ count: waiting, agoMs: ageOf(lastAskedAt, now) })),
    use,
    results: withResults([...use.keys()].map((id) => [id, [workloads.get(id)?.ended ?? 0, workloads.get(id)?.failed ?? 0]])),
    callers: new Map(
      [...demand]
        .flatMap(([slot, { caller }]) => (caller === undefined ? [] : [[slot, caller.slice(0, CALLER_CHARACTERS)] as const]))
        .slice(0, REPORTED_CALLERS),
    ),
  };
}

/** Least validity of a report. `renewMs`: with requests, which must not count for long after a crash. */
export const renewalMs = (report: TrafficReport, renewMs: number): number =>
  [...report.demand.values(), ...report.use.values()].some(({ count }) => count > 0) ? renewMs : Math.max(renewMs, QUIET_RENEW_MS);

/** When the next report is due, on the clock of `now`. `renewMs`: interval of renewals while there are requests. */
export function reportDueAt(last: LastReport | undefined, next: TrafficReport, now: number, renewMs: number): number {
  if (last === undefined) return now;
  if (demandBegan(last.report, next)) return last.at + LEAST_MS;
  return last.at + (hasNews(last, next, now) ? Math.min(COARSE_MS, renewMs) : renewalMs(last.report, renewMs));
}

export const demandBegan = (before: TrafficReport | undefined, next: TrafficReport): boolean =>
  next.demand.entries().some(([slot, { count }]) => count > 0 && (before?.demand.get(slot)?.count ?? 0) === 0);

/** Whether something happened since the last report. Entries that are merely missing do not count. */
function hasNews({ at, report }: LastReport, next: TrafficReport, now: number): boolean {
  const sinceMs = now - at;
  return (
    next.demand.entries().some(([slot, { count, agoMs }]) => agoMs < sinceMs || count !== (report.demand.get(slot)?.count ?? 0)) ||
    next.use.entries().some(([workload, { count, agoMs }]) => agoMs < sinceMs || count > 0 !== (report.use.get(workload)?.count ?? 0) > 0)
  );
}

/** If there are more entries than fit, the busy ones come first, then the most recent ones. */
function reportable<Key, Value>(
  entries: ReadonlyMap<Key, Value>,
  activityOf: (value: Value) => ReportedActivity,
): ReadonlyMap<Key, ReportedActivity> {
  const reported = [...entries]
    .map(([key, value]) => [key, activityOf(value)] as const)
    .filter(([, { count, agoMs }]) => count > 0 || agoMs < REPORTED_FOR_MS)
    .toSorted(([, one], [, other]) => Number(other.count > 0) - Number(one.count > 0) || one.agoMs - other.agoMs);
  return new Map(reported.slice(0, REPORTED));
}

const ageOf = (at: number | undefined, now: number): number => (at === undefined ? REPORTED_FOR_MS : Math.max(0, Math.round(now - at)));
