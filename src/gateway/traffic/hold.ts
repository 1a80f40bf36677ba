/**
 * Counts the requests in flight on each workload and each of its endpoints. A hold is one request's claim on an
 * endpoint:
 *
 *   Exchange.onOpen ─► acquire(): picks an endpoint ─► … ─► Exchange.#finish or onLost ─► release()
 *   the reconciler stops the workload: waits for inFlight 0, or abort() ─► onStopping ─► release()
 *
 * A hold is acquired in the same tick in which the board is read, so a workload cannot be stopped unnoticed between the
 * two, and is released exactly once. Everything is synchronous and in memory, and costs the hot path a few additions.
 */
import type { RoutedSlot, RoutedView, Target } from '../../reconciler/board.ts';
import type { WorkloadActivity } from '../../reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import { reuse } from '../../schema/words/same-value.ts';
import type { RequestProgress } from '../../providers/translation.ts';
import type { Hold, RequestEvents } from '../request-events.ts';
import { partOf } from './decide/turns.ts';
import { createDenseSet, type DenseSet, type Member } from '../../platform/dense-set.ts';
import { authorityOf } from '../route/decide/route.ts';
import { hashText, pickReplica } from '../route/decide/pick-replica.ts';

export type Holder = Pick<RequestEvents, 'onStopping'>;
export type Holds = ReturnType<typeof createHolds>;

export type ProgressListener = (slot: SlotName, progress: RequestProgress | undefined) => void;

export interface HoldDeps {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly board: { current(): RoutedView };
  /** A workload got its first request or lost its last one. `draining`: it is no longer on the board. */
  readonly onActivity: (change: { readonly slot: SlotName; readonly draining: boolean }) => void;
  /** Among how many processes the limits of a slot are divided. Default: 1. */
  readonly shares?: number | undefined;
  /** A request of the slot has ended, or has left it. Default: ignored. */
  readonly onRelease?: (slot: SlotName) => void;
  /** A server reported its progress; undefined once the request has ended. Default: ignored. */
  readonly onProgress?: ProgressListener;
}

/** Workloads to remember, so that the last use of an idle one stays known while it is off the board. */
const REMEMBERED = 4096;
/** The latest 200 requests of a slot say how even its load is. */
const KEPT_SHARE = 0.995;

interface Entry {
  readonly slot: SlotName;
  readonly slotLoad: SlotLoad;
  readonly holders: DenseSet<Holder>;
  loads: readonly Load[];
  ended: number;
  failed: number;
  lastUsedAt: number;
  lastHeardAt: number | undefined;
  /** As it was shown last. */
  shown?: WorkloadActivity;
}

interface Load {
  readonly target: Target;
  readonly entry: Entry;
  readonly hash: number;
  inFlight: number;
  /** Sequence number of its last pick among several targets; 0 before. */
  pickedAt: number;
  recent: number;
}

interface SlotLoad {
  entries: number;
  inFlight: number;
  reported: { readonly by: Member<Holder>; readonly progress: RequestProgress } | undefined;
}

export function createHolds({ now, board, onActivity, onProgress, onRelease, shares = 1 }: HoldDeps) {
  const entries = new Map<WorkloadId, Entry>();
  const slots = new Map<SlotName, SlotLoad>();
  /** Keyed by the board's target lists, so that a list is searched once per publication and not for each request. */
  const loadsOfTargets = new WeakMap<readonly Target[], readonly Load[]>();
  let picks = 0;

  function entryOf(slot: SlotName, workload: WorkloadId): Entry {
    const known = entries.get(workload);
    if (known !== undefined) return known;
    forgetOldest(entries, slots);
    let slotLoad = slots.get(slot);
    if (slotLoad === undefined) {
      slotLoad = { entries: 0, inFlight: 0, reported: undefined };
      slots.set(slot, slotLoad);
    }
    slotLoad.entries += 1;
    const entry: Entry = {
      slot,
      slotLoad,
      holders: createDenseSet(),
      loads: [],
      ended: 0,
      failed: 0,
      lastUsedAt: 0,
      lastHeardAt: undefined,
    };
    entries.set(workload, entry);
    return entry;
  }

  function loadOf(slot: SlotName, target: Target): Load {
    const entry = entryOf(slot, target.workload);
    const known = entry.loads.find((load) => isSameTarget(load.target, target));
    if (known !== undefined) return known;
    const load: Load = { target, entry, hash: hashText(authorityOf(target.endpoint)), inFlight: 0, pickedAt: 0, recent: 0 };
    entry.loads = [...entry.loads, load];
    return load;
  }

  function loadsOf({ name, targets }: RoutedSlot): readonly Load[] {
    const known = loadsOfTargets.get(targets);
    // An entry that was idle for long may have been forgotten and created again since.
    if (known?.every(({ entry, target }) => entries.get(target.workload) === entry) === true) return known;
    const loads = targets.map((target) => loadOf(name, target));
    for (const { entry } of loads) forgetIdle(entry, loads);
    loadsOfTargets.set(targets, loads);
    return loads;
  }

  function pickLoad(slot: RoutedSlot, failed: readonly Target[], conversation: string | undefined): Load | undefined {
    const [first] = slot.targets;
    if (first === undefined) return undefined;
    if (slot.targets.length === 1) {
      const only = loadOf(slot.name, first);
      if (only.entry.loads.length > 1) forgetIdle(only.entry, [only]);
      return only;
    }
    const loads = loadsOf(slot);
    const tried = failed.flatMap((each) => loads.find(({ target }) => isSameTarget(each, target)) ?? []);
    const untried = tried.length === 0 ? loads : loads.filter((load) => !tried.includes(load));
    const load = pickReplica(untried, conversation) ?? tried[0];
    if (load === undefined) return undefined;
    load.pickedAt = picks += 1;
    for (const each of loads) each.recent *= KEPT_SHARE;
    load.recent += 1;
    return load;
  }

  function release(load: Load, member: Member<Holder>, failed: boolean): void {
    const { entry } = load;
    entry.ended += 1;
    if (failed) entry.failed += 1;
    entry.holders.remove(member);
    entry.slotLoad.inFlight -= 1;
    if (entry.slotLoad.reported?.by === member) {
      entry.slotLoad.reported = undefined;
      onProgress?.(entry.slot, undefined);
    }
    load.inFlight -= 1;
    entry.lastUsedAt = now();
    if (entry.holders.size === 0) onActivity({ slot: entry.slot, draining: !isTarget(board.current(), load) });
    onRelease?.(entry.slot);
  }

  const inFlight = (slot: SlotName): number => slots.get(slot)?.inFlight ?? 0;

  /** Another request would be more than `limits.max_in_flight` allows. */
  function isFull({ name, spec: { limits } }: RoutedSlot): boolean {
    return limits?.maxInFlight !== undefined && inFlight(name) >= partOf(limits.maxInFlight, shares);
  }

  return {
    /**
     * Picks a target (`pick-replica.ts`). `failed`: targets on which the request has failed, the last one at the end;
     * they are picked only if there are no others, then the first one. `conversation`: what identifies it, if anything.
     * Undefined if the slot has no target, or is full.
     */
    acquire(slot: RoutedSlot, holder: Holder, failed: readonly Target[] = [], conversation?: string): Hold | undefined {
      const load = isFull(slot) ? undefined : pickLoad(slot, failed, conversation);
      if (load === undefined) return undefined;
      const { entry, target } = load;
      const member = entry.holders.add(holder);
      entry.slotLoad.inFlight += 1;
      load.inFlight += 1;
      entry.lastUsedAt = now();
      if (entry.holders.size === 1) onActivity({ slot: slot.name, draining: false });
      return {
        slot: slot.name,
        workload: target.workload,
        endpoint: target.endpoint,
        heard() {
          entry.lastHeardAt = now();
        },
        report(progress) {
          if (member.index === -1) return;
          entry.slotLoad.reported = { by: member, progress };
          onProgress?.(slot.name, progress);
        },
        release(failed = false) {
          if (member.index !== -1) release(load, member, failed);
        },
      };
    },
    /** The same objects while nothing happens. */
    activity: (): ReadonlyMap<WorkloadId, WorkloadActivity> => new Map(entries.entries().map(([id, entry]) => [id, activityOf(entry)])),
    inFlight,
    isFull,
    /** Progress that was reported last; undefined if no request in flight has reported any. */
    progress: (slot: SlotName): RequestProgress | undefined => slots.get(slot)?.reported?.progress,
    abort(workload: WorkloadId) {
      for (const holder of entries.get(workload)?.holders.items() ?? []) holder.onStopping();
    },
  };
}

function activityOf(entry: Entry): WorkloadActivity {
  const { holders, ended, failed, lastUsedAt, lastHeardAt } = entry;
  entry.shown = reuse(entry.shown, { inFlight: holders.size, ended, failed, lastUsedAt, lastHeardAt });
  return entry.shown;
}

/** Compares address and workload, since another workload may get the same address later. */
export function isSameTarget(one: Target, other: Target): boolean {
  return (
    one === other ||
    (one.workload === other.workload && one.endpoint.host === other.endpoint.host && one.endpoint.port === other.endpoint.port)
  );
}

/** Reads only the workload's own slot, however many slots there are. */
function isTarget(view: RoutedView, { entry, target }: Load): boolean {
  return view.slots.get(entry.slot)?.targets.some(({ workload }) => workload === target.workload) === true;
}

/** Forgets endpoints that are neither present nor in use: they come and go with pods. */
function forgetIdle(entry: Entry, present: readonly Load[]): void {
  entry.loads = entry.loads.filter((load) => load.inFlight > 0 || present.includes(load));
}

function forgetOldest(entries: Map<WorkloadId, Entry>, slots: Map<SlotName, SlotLoad>): void {
  if (entries.size < REMEMBERED) return;
  let oldest: readonly [WorkloadId, Entry] | undefined;
  for (const [id, entry] of entries) {
    if (entry.holders.size === 0 && (oldest === undefined || entry.lastUsedAt < oldest[1].lastUsedAt)) oldest = [id, entry];
  }
  if (oldest === undefined) return;
  const [id, { slot, slotLoad }] = oldest;
  entries.delete(id);
  slotLoad.entries -= 1;
  if (slotLoad.entries === 0) slots.delete(slot);
}
