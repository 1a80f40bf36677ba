/**
 * When a draining workload is stopped: at once where it has no requests; otherwise when its last request has ended or
 * its drain time is over. One that only gives way to others that need its memory has no such time. A silent one
 * finishes nothing, so it is killed at once; this resets its connections, and requests whose answer had not begun are
 * sent again. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { Action, AskedServer } from '../facts/actions.ts';
import type { Gathered } from '../facts/gather.ts';
import { workloadFactsOf } from '../facts/slot-facts.ts';
import { viewOrphan, type SlotView, type WorkloadView } from '../facts/view.ts';
import { savedServer } from '../facts/prompt-server.ts';
import { isBeingApplied, type Draining, type Roles } from '../rules/assign-roles.ts';
import { delayAfter } from '../rules/backoff.ts';
import { isSilent } from '../rules/workload-faults.ts';

/** Grace for the shutdown of the server itself; its requests have ended by then. */
const STOP_GRACE_MS = 10_000;
/** It has exited without requests, where a restart in the meantime needs no patience; or it is frozen. */
const SHORT_GRACE_MS = 1000;
/** The default drain time, because the setting of a removed slot is no longer known. */
const ORPHAN_DRAIN_MS = 30_000;

export interface TimedActions {
  readonly actions: readonly Action[];
  readonly wakes: readonly number[];
  /** Monotonic milliseconds until which time alone changes nothing, where that is earlier than the wakes. */
  readonly validUntil?: number;
}

export const NOTHING_DUE: TimedActions = { actions: [], wakes: [] };

export function planStops(view: SlotView, { draining }: Roles): TimedActions {
  const { drainTimeoutMs } = view.spec.lifecycle;
  const due = draining.filter(({ workload }) => !isBeingChanged(workload, view));
  return joinTimed(due.map((each) => planStop(each, drainTimeoutMs, view.now, view)));
}

/** Workloads of removed slots drain like any others. A slot whose text has never been valid keeps what runs. */
export function planOrphans(gathered: Gathered) {
  const { desired, workloads, now } = gathered;
  return [...workloads]
    .filter(([slot]) => !desired.slots.has(slot) && !desired.refused.has(slot))
    .flatMap(([slot, facts]) => {
      const because: Finding = { reason: 'SlotRemoved', message: `Slot "${slot}" is no longer desired` };
      return facts.map((fact) => {
        const workload = viewOrphan(workloadFactsOf(fact, gathered));
        return { id: fact.id, because, timed: planStop({ workload, because, failure: undefined }, ORPHAN_DRAIN_MS, now) };
      });
    });
}

export function joinTimed(parts: readonly TimedActions[]): TimedActions {
  if (parts.length === 0) return NOTHING_DUE;
  return {
    actions: parts.flatMap(({ actions }) => actions),
    wakes: parts.flatMap(({ wakes }) => wakes),
    validUntil: parts.reduce((soonest, { validUntil = soonest }) => Math.min(soonest, validUntil), Number.POSITIVE_INFINITY),
  };
}

/**
 * A start or an update might bring the workload back, and its last log lines are read before it is removed: all of them
 * end first. What is stopped during its start would also seem to have vanished, because the start ends after the stop.
 */
function isBeingChanged(workload: WorkloadView, view: SlotView): boolean {
  const isUpdated = view.applying?.args.updatesInPlace?.workload === workload.fact.id;
  return isUpdated || isBeingApplied(workload, view) || workload.crashNoteUnderWay;
}

/** Memory that others need is not worth an answer that has begun. */
export const drainsWithoutLimit = ({ reason }: Finding): boolean => reason === 'InsufficientMemory';

/** How long a count holds. */
const COUNT_MS = 1000;

/** Counts the requests of clients that the gateway does not know, or waits for them; undefined where it need not. */
export function awaitOthers(workload: WorkloadView, view: SlotView, because: Finding, everyMs = COUNT_MS): TimedActions | undefined {
  const { fact, known, inFlight, countUnderWay } = workload;
  const canCount = view.circumstances.providers[view.spec.provider]?.countRequests !== undefined;
  if (!canCount || fact.phase !== 'running' || fact.endpoints.length === 0 || inFlight > 0 || known.probe?.status !== 'passing')
    return undefined;
  if (countUnderWay) return NOTHING_DUE;
  const { count, at } = known.counted ?? { count: 0, at: Number.NEGATIVE_INFINITY };
  const until = at + (count > 0 ? everyMs : COUNT_MS);
  if (until > view.now) return count > 0 ? { actions: [], wakes: [until] } : undefined;
  return { actions: [{ name: 'countRequests', slot: fact.slot, because, args: askedServer(workload, view) }], wakes: [] };
}

/** Where the model of a running workload is no longer in the store, only its name is known. */
export function askedServer({ fact, known }: WorkloadView, { slot, spec, model }: SlotView): AskedServer {
  const present = model?.kind === 'present' ? model.facts : { id: spec.model.default, hostPath: '', sizeBytes: 0 };
  const origin = known.origin ?? { spec, model: present };
  return { slot: slot.name, workload: fact.id, endpoints: fact.endpoints, spec: origin.spec, model: origin.model };
}

function planStop({ workload, because, failure }: Draining, drainMs: number, now: number, view?: SlotView): TimedActions {
  const { fact, known, inFlight } = workload;
  if (workload.stopUnderWay) return NOTHING_DUE;
  const exited = fact.phase === 'exited';
  const silent = isSilent(workload, now);
  const patienceMs = drainsWithoutLimit(because) ? Number.POSITIVE_INFINITY : drainMs;
  const drainedAt = exited || silent || inFlight === 0 ? now : (known.drainingSince ?? now) + patienceMs;
  const retryAt = known.stops === undefined ? now : known.stops.lastAt + delayAfter(known.stops.failures);
  const at = Math.max(drainedAt, retryAt);
  if (at > now) return { actions: [], wakes: [at] };
  const isLate = exited || silent || now - (known.drainingSince ?? now) >= drainMs;
  const awaited = view === undefined || isLate ? undefined : awaitOthers(workload, view, because);
  if (awaited !== undefined) return awaited;
  const hasExited = exited || (fact.phase === 'created' && fact.exit !== undefined);
  const graceMs = hasExited || silent ? SHORT_GRACE_MS : STOP_GRACE_MS;
  const abort = inFlight > 0 && !silent;
  // A server with a fault may have computed anything.
  const isSound = failure === undefined && !abort && known.probe?.status === 'passing';
  const saves = isSound && view !== undefined ? savedServer(fact, view) : undefined;
  const port = known.probe?.passed === true ? undefined : fact.container.port?.host;
  const fault = failure === undefined || port === undefined ? failure : { ...failure, port };
  const args = { slot: fact.slot, workload: fact.id, graceMs, abort, failure: fault, ...(saves === undefined ? {} : { saves }) };
  return { actions: [{ name: 'stop', slot: fact.slot, because, args }], wakes: [] };
}
