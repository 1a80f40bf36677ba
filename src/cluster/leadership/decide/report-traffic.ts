/**
 * What a replica reports to the others about its traffic, and when. Demand that begins is urgent: a request waits for a slot to start. Everything else only
 * determines what is idle, where ten seconds do not matter; a busy service must not write to etcd for each request. Pure.
 */
import type { TrafficFacts } from '../../../platform/decide/sum-traffic.ts';
import { REPORTED, type ReportedActivity, type TrafficReport } from './traffic-annotation.ts';

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
export function demandBegan(before: TrafficReport | undefined, next: TrafficReport): boolean {
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
