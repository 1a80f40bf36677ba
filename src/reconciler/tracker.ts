/**
 * What the loop has learned by itself and no adapter can tell: probes, failures, what it started, since when it drains. In memory only; a
 * restart loses nothing that the next passes do not learn anew. Holds facts, and decides nothing.
 */
import type { Failure } from '../schema/failure.ts';
import type { SlotName, WorkloadId } from '../schema/names.ts';
import type { Endpoint, Health } from '../providers/provider.ts';
import type { SlotSpec } from '../schema/slot-spec.ts';
import { keyOfAction, type Action } from './decide/facts/actions.ts';
import type { WorkloadHistory, Attempt, AttemptKind, Attempts, Origin, ProbeFact, RunningAction } from './decide/facts/facts.ts';
import type { LogLine, Progress } from './ports.ts';

export interface Attempted {
  readonly kind: AttemptKind;
  readonly failure: Failure;
  readonly workload?: WorkloadId;
  readonly restartedInPlace?: true;
}

export interface Tracker {
  readonly histories: ReadonlyMap<WorkloadId, WorkloadHistory>;
  readonly attempts: ReadonlyMap<SlotName, Attempts>;
  readonly lastActive: Map<SlotName, number>;
  /** Under way, and ended since the last observation began. */
  running(): ReadonlyMap<string, RunningAction>;
  /** Actions under way now. */
  readonly underWay: ReadonlyMap<string, RunningAction>;
  takenPorts(now: number): ReadonlySet<number>;

  /** Everything that ended before this moment shows in what is observed from now on. */
  beginObservation(): void;
  /** Workloads that were there and are not, though nobody stopped them. Forgets them. */
  meet(present: readonly Met[], now: number): readonly { readonly id: WorkloadId; readonly slot: SlotName }[];
  drain(leaving: ReadonlySet<WorkloadId>, now: number): void;
  /** Makes `attempts` those of this generation, or of this spec where a slot made anew begins with the same one; true: they were of another. */
  turnTo(slot: SlotName, generation: number, spec: SlotSpec): boolean;
  forget(slot: SlotName): void;
  clearFailures(slot: SlotName): void;

  begin(action: Action, now: number): void;
  progress(key: string, progress: Progress): void;
  cancelled(key: string): void;
  end(action: Action): void;
  started(id: WorkloadId, slot: SlotName, now: number): void;
  /** Brought up to date in place. */
  updated(id: WorkloadId, generation: number, now: number): void;
  /** Its runtime started a workload of it again. */
  startedAgain(slot: SlotName): void;
  failed(slot: SlotName, attempted: Attempted, now: number): void;
  /** Of the attempt of this workload that failed then. */
  logTail(slot: SlotName, of: { readonly workload: WorkloadId; readonly at: number }, lines: readonly LogLine[]): void;
  exitNoted(id: WorkloadId, exitId: string): void;
  /** `failingEndpoints`: endpoints that did not pass. */
  probed(id: WorkloadId, health: Health, failingEndpoints: readonly Endpoint[], now: number): void;
  stopFailed(id: WorkloadId, failure: Failure, now: number): void;
  portTaken(port: number, now: number): void;
}

export interface Met {
  readonly id: WorkloadId;
  readonly slot: SlotName;
  readonly revision: string;
  /** Created or running. */
  readonly alive: boolean;
  /** Another one: the same workload was started anew, and what was known of it no longer holds. Undefined where replicas come and go. */
  readonly startedAt: number | undefined;
  /** How it ended the last time, where its runtime started it again by itself. */
  readonly exitId: string | undefined;
  /** It has no more than one replica. */
  readonly alone: boolean;
  readonly running: boolean;
  /** Its start time runs. */
  readonly counts: boolean;
}

/** Enough to tell a crash loop and to show what happened. */
const KEPT_FAILURES = 20;
/** Whoever had the port may have gone by then. */
const PORT_TAKEN_MS = 60_000;

interface Known extends WorkloadHistory {
  readonly startedAt: number | undefined;
  /** The last one it was met with. */
  readonly exitId: string | undefined;
  readonly alone: boolean;
  readonly slot: SlotName;
  /** Ended by us, or ended already: that it goes is no surprise. */
  readonly expectedToGo: boolean;
  /** Not observed yet: an older observation cannot show it. */
  readonly fresh: boolean;
  readonly running: boolean;
}

export function createTracker(): Tracker {
  const known = new Map<WorkloadId, Known>();
  const attempts = new Map<SlotName, Attempts>();
  const underWay = new Map<string, RunningAction>();
  const ended = new Map<string, RunningAction>();
  const ports = new Map<number, number>();
  const specs = new Map<SlotName, SlotSpec>();
  const origins = new Map<SlotName, { readonly revision: string; readonly origin: Origin }>();

  const change = (id: WorkloadId, part: Partial<Known>): void => {
    const before = known.get(id);
    if (before !== undefined) known.set(id, { ...before, ...part });
  };
  const changeAttempts = (slot: SlotName, part: (before: Attempts) => Partial<Attempts>): void => {
    const before = attempts.get(slot);
    if (before !== undefined) attempts.set(slot, { ...before, ...part(before) });
  };

  return {
    histories: known,
    attempts,
    lastActive: new Map(),
    underWay,
    running: () => (ended.size === 0 ? underWay : new Map([...ended, ...underWay])),
    takenPorts(now) {
      for (const [port, at] of ports) if (now - at >= PORT_TAKEN_MS) ports.delete(port);
      return new Set(ports.keys());
    },
    beginObservation() {
      ended.clear();
      for (const [id, { fresh }] of known) if (fresh) change(id, { fresh: false });
    },
    meet(present, now) {
      const ids = new Set(present.map(({ id }) => id));
      const vanished: { id: WorkloadId; slot: SlotName }[] = [];
      for (const [id, { slot, expectedToGo, fresh }] of known) {
        if (ids.has(id) || fresh) continue;
        if (!expectedToGo) vanished.push({ id, slot });
        known.delete(id);
      }
      for (const met of present) {
        const applied = origins.get(met.slot);
        const before = known.get(met.id);
        const after = meetOne(before, met, applied?.revision === met.revision ? applied.origin : undefined, now);
        if (after !== before) known.set(met.id, after);
      }
      return vanished;
    },
    drain(leaving, now) {
      for (const [id, { drainingSince }] of known) {
        if (leaving.has(id)) {
          if (drainingSince === undefined) change(id, { drainingSince: now });
        } else if (drainingSince !== undefined && !underWay.has(`stop:${id}`)) change(id, { drainingSince: undefined });
      }
    },
    turnTo(slot, generation, spec) {
      if (attempts.get(slot)?.generation === generation && specs.get(slot) === spec) return false;
      attempts.set(slot, { generation, failures: [], starts: 0 });
      specs.set(slot, spec);
      return true;
    },
    forget(slot) {
      attempts.delete(slot);
      specs.delete(slot);
      origins.delete(slot);
    },
    clearFailures: (slot) => changeAttempts(slot, () => ({ failures: [] })),
    begin(action, now) {
      underWay.set(keyOfAction(action), { action, startedAt: now });
      if (action.name === 'apply') {
        const { workload, origin } = action.args;
        origins.set(workload.slot, { revision: workload.revision, origin });
      }
      if (action.name === 'stop') change(action.args.workload, { expectedToGo: true });
    },
    progress(key, progress) {
      const running = underWay.get(key);
      if (running !== undefined) underWay.set(key, { ...running, progress });
    },
    cancelled(key) {
      const running = underWay.get(key);
      if (running !== undefined) underWay.set(key, { ...running, cancelled: true });
    },
    end(action) {
      const key = keyOfAction(action);
      const running = underWay.get(key);
      underWay.delete(key);
      if (running !== undefined) ended.set(key, running);
    },
    started(id, slot, now) {
      if (!known.has(id)) known.set(id, { ...newHistory(slot, origins.get(slot)?.origin, now), fresh: true });
      changeAttempts(slot, ({ starts }) => ({ starts: starts + 1 }));
    },
    // One that was found running was started once, too.
    startedAgain: (slot) => changeAttempts(slot, ({ starts }) => ({ starts: Math.max(starts, 1) + 1 })),
    failed(slot, attempted, now) {
      const attempt: Attempt = { at: now, ...attempted };
      changeAttempts(slot, ({ failures }) => ({ failures: [...failures, attempt].slice(-KEPT_FAILURES) }));
    },
    logTail(slot, { workload, at }, lines) {
      changeAttempts(slot, ({ failures }) => ({
        failures: failures.map((attempt) =>
          attempt.workload === workload && attempt.at === at ? { ...attempt, logTail: lines } : attempt,
        ),
      }));
    },
    exitNoted: (id, exitId) => change(id, { notedExit: exitId }),
    updated: (id, generation, now) => change(id, { updates: countUpdate(known.get(id)?.updates, generation, now) }),
    probed(id, health, failingEndpoints, now) {
      const before = known.get(id);
      if (before !== undefined) change(id, { probe: foldProbe(before.probe, health, failingEndpoints, now) });
    },
    stopFailed(id, { message }, now) {
      change(id, { stops: { failures: (known.get(id)?.stops?.failures ?? 0) + 1, lastAt: now, message }, expectedToGo: false });
    },
    portTaken: (port, now) => void ports.set(port, now),
  };
}

function newHistory(slot: SlotName, origin: Origin | undefined, now: number): Known {
  return {
    slot,
    seenAt: now,
    startCountsFrom: now,
    origin,
    probe: undefined,
    drainingSince: undefined,
    stops: undefined,
    updates: undefined,
    notedExit: undefined,
    expectedToGo: false,
    fresh: false,
    running: false,
    startedAt: undefined,
    exitId: undefined,
    alone: true,
  };
}

/** The same object while nothing is new. */
function meetOne(before: Known | undefined, met: Met, origin: Origin | undefined, now: number): Known {
  const { startedAt, alone, running, counts } = met;
  const base = before === undefined ? newHistory(met.slot, origin, now) : meetAgain(before, met, now);
  const next: Known = {
    ...base,
    startedAt,
    exitId: met.exitId ?? before?.exitId,
    notedExit: isOldExit(before, met) ? met.exitId : base.notedExit,
    alone,
    running,
    // Other processes run now than those that were probed.
    probe: running && !base.running && before !== undefined ? undefined : base.probe,
    startCountsFrom: counts ? (base.startCountsFrom ?? now) : undefined,
    expectedToGo: base.expectedToGo || !met.alive,
  };
  return before !== undefined && isAsBefore(before, next) ? before : next;
}

/** What was known of its processes no longer holds where others run now. */
function meetAgain(before: Known, met: Met, now: number): Known {
  if (before.startedAt !== undefined && before.startedAt !== met.startedAt) return newHistory(met.slot, before.origin, now);
  const ended = met.exitId !== undefined && met.exitId !== before.exitId && !isOldExit(before, met);
  return ended ? { ...before, seenAt: now, startCountsFrom: now, probe: undefined } : before;
}

/** It runs, and ended before this controller met it, or while it had other replicas: that is no news. */
function isOldExit(before: Known | undefined, { exitId, alone, running }: Met): boolean {
  if (exitId === undefined || !running || exitId === before?.exitId) return false;
  return before === undefined || (alone && !before.alone);
}

function isAsBefore(before: Known, next: Known): boolean {
  return (
    before.startedAt === next.startedAt &&
    before.exitId === next.exitId &&
    before.notedExit === next.notedExit &&
    before.alone === next.alone &&
    before.running === next.running &&
    before.probe === next.probe &&
    before.startCountsFrom === next.startCountsFrom &&
    before.expectedToGo === next.expectedToGo &&
    before.seenAt === next.seenAt
  );
}

function countUpdate(before: WorkloadHistory['updates'], generation: number, now: number): WorkloadHistory['updates'] {
  return { generation, times: before?.generation === generation ? before.times + 1 : 1, lastAt: now };
}

/** A probe that says "loading" of a workload that passed before is no failure: the server is busy. */
function foldProbe(before: ProbeFact | undefined, health: Health, failingEndpoints: readonly Endpoint[], now: number): ProbeFact {
  const passing = health.kind === 'passing';
  const same = before !== undefined && (before.status === 'passing') === passing;
  const failures = before?.consecutiveFailures ?? 0;
  return {
    status: health.kind,
    since: same ? before.since : now,
    lastAt: now,
    consecutiveFailures: passing ? 0 : health.kind === 'failing' ? failures + 1 : failures,
    message: passing ? '' : health.message,
    passed: passing || before?.passed === true,
    failingEndpoints,
  };
}
