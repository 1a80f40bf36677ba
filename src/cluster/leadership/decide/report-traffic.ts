/**
 * What a replica tells the others of its traffic, and when. Demand that begins cannot wait: somebody waits for a slot to be started. Everything else only
 * decides what is idle, where ten seconds do not matter; a busy service must not write to the cluster's store for each request. Pure.
 */
import type { SlotName, WorkloadId } from '../../../schema/names.ts';
import type { Demand, Traffic, WorkloadActivity } from '../../../reconciler/ports.ts';
import { REPORTED, type TrafficReport } from './read-traffic.ts';

export type TrafficFacts = ReturnType<Traffic['read']>;

export interface ReportTimes {
  /** The Lease is renewed as often, though there is nothing to tell. */
  readonly renewMs: number;
  /** Least time between two reports of anything but new demand. */
  readonly coarseMs: number;
  /** Least time between any two. */
  readonly leastMs: number;
}

/** What was told last, and when. */
export interface LastReport {
  readonly at: number;
  readonly report: TrafficReport;
}

/** Older things are known by now, or the cluster could not be reached for so long that it matters no more. */
const TOLD_FOR_MS = 10 * 60_000;

/** The newest and busiest first, where there are more than fit. `now` in Unix milliseconds, as the facts have it. */
export function composeReport({ demand, workloads }: TrafficFacts, now: number): TrafficReport {
  const asked = most(
    demand,
    ({ waiting }) => waiting > 0,
    ({ lastAskedAt }) => lastAskedAt,
    now,
  );
  const used = most(
    workloads,
    ({ inFlight }) => inFlight > 0,
    ({ lastUsedAt }) => lastUsedAt,
    now,
  );
  return {
    demand: new Map(asked.map(([slot, { waiting, lastAskedAt }]) => [slot, { waiting, askedAgoMs: ageOf(lastAskedAt, now) }])),
    use: new Map(used.map(([workload, { inFlight, lastUsedAt }]) => [workload, { inFlight, usedAgoMs: ageOf(lastUsedAt, now) }])),
  };
}

/** When the next report is due; `now` and the answer in the same milliseconds as `last.at`. */
export function reportDueAt(last: LastReport | undefined, next: TrafficReport, now: number, times: ReportTimes): number {
  if (last === undefined) return now;
  if (demandBegan(last.report, next)) return last.at + times.leastMs;
  return last.at + (hasNews(last, next, now) ? Math.min(times.coarseMs, times.renewMs) : times.renewMs);
}

/** A slot has requests waiting that had none. */
function demandBegan(last: TrafficReport, next: TrafficReport): boolean {
  for (const [slot, { waiting }] of next.demand) if (waiting > 0 && (last.demand.get(slot)?.waiting ?? 0) === 0) return true;
  return false;
}

/** Something began, ended, or happened since. What was only forgotten is no news. */
function hasNews({ at, report }: LastReport, next: TrafficReport, now: number): boolean {
  const sinceMs = now - at;
  for (const [slot, { waiting, askedAgoMs }] of next.demand) {
    if (askedAgoMs < sinceMs || waiting !== (report.demand.get(slot)?.waiting ?? 0)) return true;
  }
  for (const [workload, { inFlight, usedAgoMs }] of next.use) {
    if (usedAgoMs < sinceMs || inFlight > 0 !== (report.use.get(workload)?.inFlight ?? 0) > 0) return true;
  }
  return false;
}

function most<Key extends SlotName | WorkloadId, Value extends Demand | WorkloadActivity>(
  entries: ReadonlyMap<Key, Value>,
  isBusy: (value: Value) => boolean,
  lastAt: (value: Value) => number | undefined,
  now: number,
): readonly (readonly [Key, Value])[] {
  const told = [...entries].filter(([, value]) => isBusy(value) || ageOf(lastAt(value), now) < TOLD_FOR_MS);
  if (told.length <= REPORTED) return told;
  const rank = (value: Value): number => (isBusy(value) ? Number.MAX_SAFE_INTEGER : (lastAt(value) ?? 0));
  return told.toSorted(([, one], [, other]) => rank(other) - rank(one)).slice(0, REPORTED);
}

function ageOf(at: number | undefined, now: number): number {
  return at === undefined ? TOLD_FOR_MS : Math.max(0, Math.round(now - at));
}
