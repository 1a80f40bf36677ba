/**
 * What the loop has learned itself and no adapter can tell: histories of workloads, failed attempts, actions under way,
 * when a slot was last used. In memory only: after a restart the next passes learn it again. Holds facts and decides
 * nothing.
 */
import type { SlotName, WorkloadId } from '../schema/words/names.ts';
import { applyKey, evaluateKey, keyOfAction, type Action, type Origin } from './decide/facts/actions.ts';
import type { Observed, RunningAction, Attempt, Attempts } from './decide/facts/facts.ts';
import type { MeasuredMemory } from './decide/facts/measured-memory.ts';
import type { SeenWorkload } from './decide/facts/workload-history.ts';
import type { Progress, DesiredSlot, LogLine, PromptReport, ReadAheadReport } from './ports.ts';
import { changerOf, createWorkloadHistories, type Vanished } from './remember/workload-histories.ts';
import { classifyEdit, type Declared, type SlotEdit } from './decide/facts/slot-edit.ts';

export type Tracker = ReturnType<typeof createTracker>;

/** By then, the other program may have released the port. */
const PORT_TAKEN_MS = 60_000;

export function createTracker() {
  const histories = createWorkloadHistories();
  const attempts = createSlotAttempts();
  /** Monotonic milliseconds. */
  const lastActive = new Map<SlotName, number>();
  /** When requests last needed a slot, in monotonic milliseconds. */
  const requestAt = new Map<SlotName, number>();
  /** Peak measured memory of a slot's servers. */
  const measured = new Map<SlotName, MeasuredMemory>();
  const underWay = new Map<string, RunningAction>();
  /** Actions that ended since the last observation began, which may not show their effect yet. */
  const ended = new Map<string, RunningAction>();
  const ports = new Map<number, number>();
  const origins = new Map<SlotName, { readonly revision: string; readonly origin: Origin }>();
  /** Slots that were removed while a workload of them was started, with those that were seen since. */
  const removedInStart = new Map<SlotName, Set<WorkloadId>>();
  /** Their stops are under way, or have ended so lately that the present observation may not show it. */
  const findStopping = (): ReadonlySet<WorkloadId> => {
    const running = [...underWay.values(), ...ended.values()];
    return new Set(running.flatMap(({ action }) => (action.name === 'stop' ? action.args.workload : [])));
  };
  const change = changerOf(underWay);
  return {
    histories,
    attempts,
    lastActive,
    requestAt,
    measured,
    underWay,
    /** What a plan may look at, as it is now: what actions report later does not change it. */
    facts(now: number): Pick<Observed, 'histories' | 'attempts' | 'measured' | 'running' | 'lastActive' | 'takenPorts'> {
      for (const [port, at] of ports) if (now - at >= PORT_TAKEN_MS) ports.delete(port);
      return {
        histories: new Map(histories.all),
        attempts: new Map(attempts.all),
        measured,
        running: new Map([...ended, ...underWay]),
        lastActive,
        takenPorts: new Set(ports.keys()),
      };
    },
    /** Everything that ended before this moment shows in the next observation. */
    beginObservation(): void {
      ended.clear();
      histories.beginObservation();
    },
    /** Returns workloads that disappeared without a stop action. */
    observe(seen: readonly SeenWorkload[], now: number): readonly Vanished[] {
      for (const { id, slot } of seen) removedInStart.get(slot)?.add(id);
      return histories.observe(
        seen,
        ({ slot, revision }) => (origins.get(slot)?.revision === revision ? origins.get(slot)?.origin : undefined),
        findStopping(),
        now,
      );
    },
    markDraining: (draining: ReadonlySet<WorkloadId>, now: number) => histories.markDraining(draining, findStopping(), now),
    /** Forgets slots that are no longer desired. */
    keepOnly(slots: ReadonlyMap<SlotName, unknown>): void {
      for (const name of attempts.all.keys()) {
        if (slots.has(name)) continue;
        attempts.forget(name);
        lastActive.delete(name);
        requestAt.delete(name);
        measured.delete(name);
      }
      // A workload that is still being started holds memory, whatever became of its slot.
      for (const name of origins.keys()) {
        if (slots.has(name)) continue;
        if (underWay.has(applyKey(name))) removedInStart.set(name, removedInStart.get(name) ?? new Set());
        else origins.delete(name);
      }
    },
    begin(action: Action, now: number): void {
      underWay.set(keyOfAction(action), { action, startedAt: now });
      if (action.name === 'apply') {
        const { workload, origin } = action.args;
        origins.set(workload.slot, { revision: workload.revision, origin });
        removedInStart.delete(workload.slot);
      }
      if (action.name === 'stop') histories.stopBegun(action.args.workload);
    },
    progress: (key: string, progress: Progress) => change(key, () => ({ progress })),
    cancelled: (key: string) => change(key, () => ({ cancelled: true })),
    end(action: Action): void {
      const key = keyOfAction(action);
      const running = underWay.get(key);
      underWay.delete(key);
      if (running !== undefined) ended.set(key, running);
      if (action.name === 'apply') removedInStart.delete(action.args.workload.slot);
    },
    started(id: WorkloadId, slot: SlotName, now: number): void {
      // It ended meanwhile, and is none of a slot of this name that was declared since.
      const isGone = removedInStart.get(slot)?.has(id) === true && !histories.all.has(id);
      if (!isGone) histories.started(id, slot, origins.get(slot)?.origin, now);
      attempts.started(slot, origins.get(slot)?.revision ?? '', now);
    },
    /** Whether the workload answers cases now. */
    isEvaluated({ slot, workload }: { readonly slot: SlotName; readonly workload: WorkloadId }): boolean {
      const action = underWay.get(evaluateKey(slot))?.action;
      return action?.name === 'evaluate' && action.args.workload === workload;
    },
    portTaken: (port: number, now: number) => void ports.set(port, now),
  };
}

/** Enough to recognise a crash loop, to reach the longest back-off and to show what happened. */
const KEPT = 20;

/** Failures and starts of each slot since its last edit other than of replicas. */
function createSlotAttempts() {
  const all = new Map<SlotName, Attempts>();
  const seen = new Map<SlotName, Declared>();
  const change = changerOf(all);
  return {
    all,
    /** Counts from zero after an edit, unless it only scaled the slot. Returns what changed since the last call. */
    followEdit({ name, uid, generation, spec, paused }: Declared & Pick<DesiredSlot, 'name'>): SlotEdit {
      const before = seen.get(name);
      if (before?.spec === spec && before.generation === generation && before.uid === uid) return 'unchanged';
      const edit = classifyEdit(before, { uid, generation, spec, paused });
      seen.set(name, { uid, generation, spec });
      if (edit === 'unchanged') return edit;
      if (edit === 'edited') all.set(name, { generation, failures: [], repairs: undefined, starts: 0 });
      else change(name, () => ({ generation, ...(edit === 'scaled-up' ? { startLog: [] } : {}) }));
      return edit;
    },
    /** Takes over what earlier controllers recorded of this generation, unless more is known already. */
    recall: (slot: SlotName, recorded: readonly Attempt[]) =>
      change(slot, ({ failures }) => (failures.length >= recorded.length ? {} : { failures: recorded })),
    forget(slot: SlotName): void {
      all.delete(slot);
      seen.delete(slot);
    },
    clearFailures: (slot: SlotName) => change(slot, () => ({ failures: [], repairs: undefined, startLog: [] })),
    started: (slot: SlotName, revision: string, now: number) =>
      change(slot, ({ starts, startLog = [] }) => ({ starts: starts + 1, startLog: [...startLog, { revision, at: now }].slice(-KEPT) })),
    /** Its runtime restarted a workload of it. One that was found running was started once, too. */
    restartedInPlace: (slot: SlotName) => change(slot, ({ starts }) => ({ starts: Math.max(starts, 1) + 1 })),
    failed(slot: SlotName, attempt: Omit<Attempt, 'at' | 'recordedAt' | 'logTail'>, now: number): void {
      const failure: Attempt = { at: now, ...attempt };
      change(slot, ({ failures }) => ({ failures: [...failures, failure].slice(-KEPT) }));
    },
    promptsMoved: (slot: SlotName, prompts: PromptReport) => change(slot, () => ({ prompts })),
    readAhead: (slot: SlotName, readAhead: ReadAheadReport) => change(slot, () => ({ readAhead })),
    /** An altered workload is being replaced, or was updated in place. */
    repaired: (slot: SlotName, workload: WorkloadId, now: number) =>
      change(slot, ({ repairs }) => ({ repairs: { times: (repairs?.times ?? 0) + 1, lastAt: now, workload } })),
    /** Adds log lines to the attempt of this workload that failed at `at`. */
    addLogTail(slot: SlotName, { workload, at }: Pick<Required<Attempt>, 'workload' | 'at'>, lines: readonly LogLine[]): void {
      const add = (attempt: Attempt): Attempt =>
        attempt.workload === workload && attempt.at === at ? { ...attempt, logTail: lines } : attempt;
      change(slot, ({ failures }) => ({ failures: failures.map(add) }));
    },
  };
}
