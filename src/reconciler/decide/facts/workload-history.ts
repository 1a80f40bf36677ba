/** A controller's knowledge of a workload beyond its runtime's report, and how observations update it. Pure. */
import type { Endpoint, Health } from '../../../providers/provider.ts';
import type { Finding } from '../../../schema/words/failure.ts';
import type { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import type { ObservedWorkload, RuntimeTraits, WorkloadExit } from '../../ports.ts';
import type { Origin } from './actions.ts';

export interface WorkloadHistory {
  /** When this controller first saw it. */
  readonly seenAt: number;
  /** When its start time began to count; undefined while the workload waits for something else. */
  readonly startCountsFrom: number | undefined;
  readonly probe: ProbeFact | undefined;
  /** Since when it is being drained. */
  readonly drainingSince: number | undefined;
  /** What it was started with; undefined for one that this controller did not start. */
  readonly origin: Origin | undefined;
  /** Stops of it that failed. */
  readonly stops: { readonly failures: number; readonly lastAt: number; readonly message: string } | undefined;
  /** How often it was updated in place for one generation of its slot. */
  readonly updates: { readonly generation: number; readonly times: number; readonly lastAt: number } | undefined;
  /** The ids of exits that were counted, where the runtime restarts workloads itself; the newest last. */
  readonly notedExits: readonly string[];
  /** How often its server was put to sleep since it was woken for a request. `fault`: it was not, or was not woken. */
  readonly sleeps?: { readonly times: number; readonly lastAt: number; readonly fault?: Finding } | undefined;
  /** Requests that its server counted last. */
  readonly counted?: { readonly count: number; readonly at: number; readonly problem?: string | undefined } | undefined;
}

export interface ProbeFact {
  readonly status: Health['kind'];
  /** Start of `status`, in monotonic milliseconds; changes between the failing values do not count. */
  readonly since: number;
  readonly lastAt: number;
  readonly consecutiveFailures: number;
  /** How many probes in a row got no answer at all. */
  readonly consecutiveSilences: number;
  readonly message: string;
  /** Whether it ever passed. */
  readonly passed: boolean;
  /** It must pass again before it gets requests, as it slept, or was told to stop and did not. Default: it need not. */
  readonly mustPass?: boolean;
  /** Endpoints that did not pass the last time; the workload passes as long as one of its endpoints does. */
  readonly failingEndpoints: readonly Endpoint[];
  /** Endpoints that have passed once; a server at any other one has not shown yet that it is ready. */
  readonly passedEndpoints: readonly Endpoint[];
}

/** A history, plus the state needed to interpret the next observation. */
export interface TrackedHistory extends WorkloadHistory {
  readonly slot: SlotName;
  readonly startedAt: number | undefined;
  /** The last exit it was seen with. */
  readonly exitId: string | undefined;
  readonly alone: boolean;
  readonly running: boolean;
  /** It is being stopped, or has exited: that it disappears is no surprise. */
  readonly expectedToGo: boolean;
  /** It was started after the present observation began, which cannot show it. */
  readonly fresh: boolean;
}

/** The part of an observed workload that its history depends on. */
export interface SeenWorkload {
  readonly id: WorkloadId;
  readonly slot: SlotName;
  readonly revision: string;
  /** Created or running. */
  readonly alive: boolean;
  /** A new start time means that the same workload was started again. Undefined where replicas come and go. */
  readonly startedAt: number | undefined;
  /** How it ended last, where its runtime restarted it. */
  readonly exitId: string | undefined;
  /** It has at most one replica. */
  readonly alone: boolean;
  readonly running: boolean;
  /** Its start time counts now. */
  readonly counts: boolean;
}

export function seenWorkload(workload: ObservedWorkload, { network }: RuntimeTraits): SeenWorkload {
  const { id, slot, revision, phase, startedAt, waitingReason, fetching, exit, replicas } = workload;
  const pods = network === 'pods';
  const running = phase === 'running';
  return {
    id,
    slot,
    revision,
    startedAt: pods ? undefined : startedAt,
    exitId: phase === 'exited' || exit === undefined ? undefined : exitId(exit),
    alone: replicas === undefined || replicas.present <= 1,
    alive: phase === 'created' || running,
    running,
    counts: waitingReason === undefined && fetching === undefined && (running || !pods),
  };
}

export function newHistory(slot: SlotName, origin: Origin | undefined, now: number): TrackedHistory {
  return {
    slot,
    seenAt: now,
    startCountsFrom: now,
    origin,
    probe: undefined,
    drainingSince: undefined,
    stops: undefined,
    updates: undefined,
    notedExits: [],
    expectedToGo: false,
    fresh: false,
    running: false,
    startedAt: undefined,
    exitId: undefined,
    alone: true,
  };
}

/** Returns the same object while nothing is new. */
export function mergeSeen(before: TrackedHistory | undefined, seen: SeenWorkload, origin: Origin | undefined, now: number): TrackedHistory {
  const { startedAt, alone, running, counts } = seen;
  if (before !== undefined && isKnown(before, seen)) return before;
  const base = before === undefined ? newHistory(seen.slot, origin, now) : afterRestart(before, seen, now);
  return {
    ...base,
    startedAt,
    exitId: seen.exitId ?? before?.exitId,
    notedExits: isOldExit(before, seen) ? withExit(base.notedExits, seen.exitId) : base.notedExits,
    alone,
    running,
    probe: running && !base.running && before !== undefined ? probeOfReturned(base.probe, startedAt) : base.probe,
    startCountsFrom: counts ? (base.startCountsFrom ?? now) : undefined,
    expectedToGo: base.expectedToGo || !seen.alive,
  };
}

/** Compares before anything is made, as nearly all of thousands of workloads are as they were. */
function isKnown(before: TrackedHistory, seen: SeenWorkload): boolean {
  return (
    before.startedAt === seen.startedAt &&
    (seen.exitId === undefined || seen.exitId === before.exitId) &&
    before.alone === seen.alone &&
    before.running === seen.running &&
    (before.startCountsFrom !== undefined) === seen.counts &&
    (before.expectedToGo || seen.alive)
  );
}

/** Pods that run again have other processes. A server that runs again with the same start outlived its stop. */
const probeOfReturned = (probe: ProbeFact | undefined, startedAt: number | undefined): ProbeFact | undefined =>
  startedAt === undefined ? undefined : probe && { ...probe, mustPass: true };

/** What was known of its processes no longer holds once other processes run. */
function afterRestart(before: TrackedHistory, seen: SeenWorkload, now: number): TrackedHistory {
  if (before.startedAt !== undefined && before.startedAt !== seen.startedAt) return newHistory(seen.slot, before.origin, now);
  const ended = seen.exitId !== undefined && seen.exitId !== before.exitId && !isOldExit(before, seen);
  return ended ? { ...before, seenAt: now, startCountsFrom: now, probe: undefined, sleeps: undefined } : before;
}

/**
 * It was noted, or the workload runs and the exit predates this controller's knowledge. The exit of a replica shows
 * again once the one that ended last is gone.
 */
function isOldExit(before: TrackedHistory | undefined, { exitId: id, alone, running }: SeenWorkload): boolean {
  if (id === undefined || id === before?.exitId) return false;
  if (before?.notedExits.includes(id) === true) return true;
  return running && (before === undefined || (alone && !before.alone));
}

/** More than a workload has replicas whose last exit can show again. */
const MOST_EXITS = 64;

export const withExit = (known: readonly string[], id: string | undefined): readonly string[] =>
  id === undefined ? known : [...known.filter((each) => each !== id), id].slice(-MOST_EXITS);

export interface ProbeResult {
  readonly health: Health;
  /** All that were asked. */
  readonly endpoints: readonly Endpoint[];
  readonly failingEndpoints: readonly Endpoint[];
}

/** A server that sleeps could answer once, and can again. */
export const isSound = (status: Health['kind'] | undefined): boolean => status === 'passing' || status === 'asleep';

/** A workload that passed before and now says that it is loading is busy, which counts as no failure. */
export function mergeProbe(before: ProbeFact | undefined, { health, endpoints, failingEndpoints }: ProbeResult, now: number): ProbeFact {
  const passing = health.kind === 'passing';
  const sound = isSound(health.kind);
  const same = before !== undefined && (before.status === health.kind || !(sound || isSound(before.status)));
  const failures = before?.consecutiveFailures ?? 0;
  const failed = !sound && health.kind !== 'loading';
  const passedBefore = before?.passedEndpoints ?? [];
  return {
    status: health.kind,
    since: same ? before.since : now,
    lastAt: now,
    consecutiveFailures: sound ? 0 : failed ? failures + 1 : failures,
    consecutiveSilences: health.kind === 'silent' ? (before?.consecutiveSilences ?? 0) + 1 : 0,
    message: passing ? '' : health.message,
    passed: sound || before?.passed === true,
    mustPass: health.kind === 'asleep' || (!passing && before?.mustPass === true),
    failingEndpoints,
    passedEndpoints: endpoints.filter((each) => isAmong(each, passedBefore) || !isAmong(each, failingEndpoints)),
  };
}

export function isAmong({ host, port }: Endpoint, endpoints: readonly Endpoint[]): boolean {
  return endpoints.some((endpoint) => endpoint.host === host && endpoint.port === port);
}

/** Distinguishes two exits of a workload. Their times come from another clock and may be as coarse as a second. */
export const exitId = ({ container, at }: WorkloadExit): string => container ?? String(at);
