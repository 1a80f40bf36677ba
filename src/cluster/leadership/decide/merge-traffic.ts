/** Merges the traffic of all replicas: the sums of what is in flight or waits now, over the live replicas, and the latest times, over all reports ever received. Pure. */
import { z } from 'zod';
import { sumTraffic, type TrafficFacts } from '../../../platform/decide/sum-traffic.ts';
import { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { LABEL_PREFIX } from '../../../schema/pod/kube-fields.ts';

export interface ReceivedReport {
  readonly report: TrafficReport;
  /** When it was first seen, in milliseconds of this replica's monotonic clock. Its ages count from there. */
  readonly seenAt: number;
  /** Whether the replica that wrote it is alive: only then do its counts matter. */
  readonly fresh: boolean;
}

/** The latest times ever reported, on the same clock. They remain when a replica ends, and when a report no longer contains them. */
interface TrafficHistory {
  readonly usedAt: ReadonlyMap<WorkloadId, number>;
  readonly askedAt: ReadonlyMap<SlotName, number>;
}

export const NO_HISTORY: TrafficHistory = { usedAt: new Map(), askedAt: new Map() };
/** As many as a gateway keeps of its own traffic. */
const REMEMBERED = 4096;
/** Use only changes `idle` and `serving`. */
const USE_WITHIN_MS = 1000;

export function rememberReport(history: TrafficHistory, { report, seenAt }: Pick<ReceivedReport, 'report' | 'seenAt'>): TrafficHistory {
  const used = [...report.use].map(([workload, { agoMs }]) => [workload, seenAt - agoMs] as const);
  const asked = [...report.demand].map(([slot, { agoMs }]) => [slot, seenAt - agoMs] as const);
  return { usedAt: withLatest(history.usedAt, used), askedAt: withLatest(history.askedAt, asked) };
}

export function mergeTraffic(local: TrafficFacts, others: readonly ReceivedReport[], history: TrafficHistory): TrafficFacts {
  return sumTraffic([local, pastOf(history), ...others.filter(({ fresh }) => fresh).map(presentOf)]);
}

function pastOf({ usedAt, askedAt }: TrafficHistory): TrafficFacts {
  return {
    workloads: new Map([...usedAt].map(([workload, lastUsedAt]) => [workload, { inFlight: 0, lastUsedAt }])),
    demand: new Map([...askedAt].map(([slot, lastAskedAt]) => [slot, { waiting: 0, lastAskedAt }])),
  };
}

/** Only what is in flight or waits: the times are in the history. */
function presentOf({ report: { use, demand }, seenAt }: ReceivedReport): TrafficFacts {
  return {
    workloads: new Map(
      [...use]
        .filter(([, { count }]) => count > 0)
        .map(([workload, { count, agoMs }]) => [workload, { inFlight: count, lastUsedAt: seenAt - agoMs }]),
    ),
    demand: new Map(
      [...demand]
        .filter(([, { count }]) => count > 0)
        .map(([slot, { count, agoMs }]) => [slot, { waiting: count, lastAskedAt: seenAt - agoMs }]),
    ),
  };
}

/** Returns within how many milliseconds a pass should run after a report changed: 0 for new demand, later for use, undefined if nothing relevant changed. */
export function wakeFor(before: TrafficReport | undefined, next: TrafficReport): number | undefined {
  if (demandBegan(before, next)) return 0;
  const useChanged = next.use.entries().some(([workload, { count }]) => {
    const known = before?.use.get(workload);
    return known === undefined || count > 0 !== known.count > 0;
  });
  return useChanged ? USE_WITHIN_MS : undefined;
}

function withLatest<Key>(before: ReadonlyMap<Key, number>, entries: readonly (readonly [Key, number])[]): ReadonlyMap<Key, number> {
  const later = entries.filter(([key, at]) => at > (before.get(key) ?? Number.NEGATIVE_INFINITY));
  if (later.length === 0) return before;
  const next = new Map([...before, ...later]);
  if (next.size <= REMEMBERED) return next;
  return new Map([...next].toSorted(([, one], [, other]) => other - one).slice(0, REMEMBERED));
}

/**
 * What a replica reports to the others about its traffic, and when. Demand that begins is urgent: a request waits for a slot to start. Everything else only
 * determines what is idle, where ten seconds do not matter; a busy service must not write to etcd for each request. Pure.
 */

export interface LastReport {
  /** When it was written. */
  readonly at: number;
  readonly report: TrafficReport;
}

/** Minimum time between two reports, unless there is new demand. */
export const COARSE_MS = 10_000;
/** Minimum time between two reports. */
export const LEAST_MS = 1000;
/** Renewal of a report without any requests. It only shows that the replica exists, which no decision needs. */
const QUIET_RENEW_MS = 120_000;
/** Older activity is known to the leader, or the cluster was unreachable for so long that it no longer matters. */
const REPORTED_FOR_MS = 10 * 60_000;

/** `now` in monotonic milliseconds, like the facts. */
export function composeReport({ demand, workloads }: TrafficFacts, now: number): TrafficReport {
  return {
    demand: reportable(demand, ({ waiting, lastAskedAt }) => ({ count: waiting, agoMs: ageOf(lastAskedAt, now) })),
    use: reportable(workloads, ({ inFlight, lastUsedAt }) => ({ count: inFlight, agoMs: ageOf(lastUsedAt, now) })),
  };
}

/** How long a report is valid at least if nothing changes. `renewMs`: that of a report of requests, which must not count for long after a crash. */
export const renewalMs = (report: TrafficReport, renewMs: number): number =>
  [...report.demand.values(), ...report.use.values()].some(({ count }) => count > 0) ? renewMs : Math.max(renewMs, QUIET_RENEW_MS);

/** When the next report is due. `renewMs`: interval in which the Lease is renewed even if nothing has changed, while requests wait or are in flight. `now` and the result are in the same milliseconds as `last.at`. */
export function reportDueAt(last: LastReport | undefined, next: TrafficReport, now: number, renewMs: number): number {
  if (last === undefined) return now;
  if (demandBegan(last.report, next)) return last.at + LEAST_MS;
  return last.at + (hasNews(last, next, now) ? Math.min(COARSE_MS, renewMs) : renewalMs(last.report, renewMs));
}

/** Whether requests wait for a slot that had none waiting before. */
function demandBegan(before: TrafficReport | undefined, next: TrafficReport): boolean {
  return next.demand.entries().some(([slot, { count }]) => count > 0 && (before?.demand.get(slot)?.count ?? 0) === 0);
}

/** Whether something began, ended or happened since the last report. Entries that are merely missing from the next report do not count. */
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

function ageOf(at: number | undefined, now: number): number {
  return at === undefined ? REPORTED_FOR_MS : Math.max(0, Math.round(now - at));
}

/** The traffic of one replica as text, in the annotation of its Lease. Times are ages, since the clocks of replicas differ. Pure. */

export const TRAFFIC_ANNOTATION = `${LABEL_PREFIX}/traffic`;

interface ReportedActivity {
  /** Requests that wait for the slot, or that are in flight on the workload. */
  readonly count: number;
  /** Milliseconds since the last request, when the report was written. */
  readonly agoMs: number;
}

/** Most slots and most workloads in one report. All annotations of an object may have 256 KiB; a full report has about 200. */
const REPORTED = 2000;

const Count = z.int().min(0);
const Activity = z.tuple([Count, Count]).transform(([count, agoMs]): ReportedActivity => ({ count, agoMs }));

const activities = <Name extends z.ZodType<string, string>>(name: Name) =>
  z
    .record(z.string(), z.unknown())
    .transform((record) => Object.entries(record))
    .pipe(z.array(z.tuple([name, Activity])).max(REPORTED))
    .transform((entries): ReadonlyMap<z.output<Name>, ReportedActivity> => new Map(entries));

/** A later version may add keys. If it changes the meaning of these keys, it has another number. */
const Annotation = z
  .object({ version: z.literal(1), demand: activities(SlotName), use: activities(WorkloadId) })
  .transform(({ demand, use }) => ({ demand, use }));

/** By slot, and by workload. */
export type TrafficReport = Readonly<z.output<typeof Annotation>>;

/** Returns undefined if the text is not a report. */
export function parseTraffic(text: string | undefined): TrafficReport | undefined {
  return Annotation.safeParse(parseJson(text ?? '')).data;
}

export function formatTraffic({ demand, use }: TrafficReport): string {
  return JSON.stringify({ version: 1, demand: pairsOf(demand), use: pairsOf(use) });
}

function pairsOf(activity: ReadonlyMap<string, ReportedActivity>): Readonly<Record<string, readonly [number, number]>> {
  return Object.fromEntries([...activity].map(([key, { count, agoMs }]) => [key, [count, agoMs]]));
}
