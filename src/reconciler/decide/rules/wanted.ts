/** Whether a slot should run now. Pure. */
import type { Finding } from '../../../schema/words/failure.ts';
import type { SlotView } from '../facts/view.ts';
import { isSound } from '../facts/workload-history.ts';
import type { DesiredSlot, ObservedWorkload, Traffic } from '../../ports.ts';
import type { PublishedSlot } from '../facts/facts.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { SlotEdit } from '../facts/slot-edit.ts';

/**
 * How long a load goes on after its last waiting request has left. A client whose attempt timed out tries again within
 * this time: the SDKs of OpenAI wait 8 s at most. A longer time would keep memory from slots that are asked for.
 */
const ABANDONED_MS = 10_000;

/** Why the slot should not run now; undefined where it should. */
export function whyNotWanted(view: SlotView): Finding | undefined {
  return whyOff(view) ?? (view.warm === undefined && whyAsleep(view) === undefined ? whyAtRest(view) : undefined);
}

const whyOff = (view: SlotView): Finding | undefined => notEnabled(view) ?? noReplicas(view);

/** Why the slot would not run now if nothing loaded it ahead of requests. */
const whyAtRest = (view: SlotView): Finding | undefined =>
  notAskedFor(view) ?? abandoned(view) ?? gaveWay(view) ?? notAskedSince(view) ?? idleTimedOut(view);

export const ASLEEP: Finding = { reason: 'Sleeping', message: 'The slot is idle, and its server sleeps; the next request wakes it' };

/** Why the slot rests with a server that sleeps instead of being stopped; undefined where it does not. */
export function whyAsleep(view: SlotView): Finding | undefined {
  const { sleep } = view.circumstances.providers[view.spec.provider] ?? {};
  if (sleep?.appliesTo(view.spec) !== true || view.network === 'pods') return undefined;
  if (view.warm !== undefined || whyOff(view) !== undefined || isInUse(view)) return undefined;
  const running = view.workloads.filter(
    ({ alive, standing, stopUnderWay, fact }) => alive && fact.phase === 'running' && standing !== 'outdated' && !stopUnderWay,
  );
  const maySleep = running.some(
    ({ standing, known, fact }) =>
      standing === 'current' && fact.endpoints.length > 0 && isSound(known.probe?.status) && known.sleeps?.fault === undefined,
  );
  // What was found asleep stays so, though nobody knows since when the slot is idle. It does not beside a server that
  // is awake, nor where an edit has taken the idle time away.
  const staysAsleep =
    view.spec.lifecycle.idleTimeoutMs < Number.POSITIVE_INFINITY && running.every(({ known }) => known.probe?.status === 'asleep');
  const rests = maySleep && (staysAsleep || idleTimedOut(view) !== undefined);
  return rests ? ASLEEP : undefined;
}

/** Why the slot rests unless nobody else needs its memory: loaded ahead of requests, or asleep. */
export function whyAhead(view: SlotView): Finding | undefined {
  if (view.warm === undefined) return whyAsleep(view);
  return whyOff(view) === undefined ? whyAtRest(view) : undefined;
}

function notEnabled({ spec, slot: { paused } }: SlotView): Finding | undefined {
  if (spec.enabled) return undefined;
  const isAwaited = paused?.spec.enabled === true;
  const message = isAwaited ? 'Slot is off: rollouts are paused, and the edit that turns it on waits' : 'Slot is off: "enabled" is false';
  return { reason: 'Disabled', message };
}

function noReplicas({ network, spec, waiting }: SlotView): Finding | undefined {
  if (network !== 'pods' || spec.cluster.replicas > 0) return undefined;
  const waits = waiting > 0 ? ', and requests wait until somebody scales it up' : '';
  return { reason: 'NoReplicas', message: `The slot is scaled to zero replicas${waits}` };
}

function notAskedFor(view: SlotView): Finding | undefined {
  if (view.spec.load !== 'on-demand' || view.lastActiveAt !== undefined || isInUse(view)) return undefined;
  return { reason: 'NotAskedFor', message: 'The slot loads on demand, and no request has asked for it' };
}

function abandoned(view: SlotView): Finding | undefined {
  const at = abandonedAt(view);
  if (at === undefined || view.now < at) return undefined;
  return { reason: 'NotAskedFor', message: 'The slot loads on demand, and every request that waited for it has left' };
}

/** Loading it without a request would take memory from the next slot that is requested. */
function gaveWay(view: SlotView): Finding | undefined {
  if (view.spec.load !== 'on-demand' || !view.lastGaveWay || isInUse(view)) return undefined;
  if (view.applying !== undefined || view.workloads.some(({ alive }) => alive)) return undefined;
  return {
    reason: 'GaveWay',
    message: 'The slot loads on demand, and other slots have the memory that it needs; the next request loads it',
  };
}

/** It was loaded ahead of requests, and is no longer. */
function notAskedSince(view: SlotView): Finding | undefined {
  if (view.spec.load !== 'on-demand' || !view.lastAhead || isInUse(view)) return undefined;
  return { reason: 'GaveWay', message: 'The slot was loaded ahead of requests, and none has come; the next request loads it' };
}

/** Monotonic milliseconds at which an on-demand load is abandoned because no request waits; undefined if it is not. */
export function abandonedAt(view: SlotView): number | undefined {
  if (view.spec.load !== 'on-demand' || !view.lastUnserved || view.lastAskedAt === undefined) return undefined;
  return isInUse(view) || hasLoaded(view) ? undefined : view.lastAskedAt + ABANDONED_MS;
}

/**
 * Key of the caller whose request loads the slot: the first one that waited while it rested, also after it has left.
 * Undefined where the slot would be loaded without, as after a crash.
 */
export function loadsFor(view: SlotView): string | undefined {
  if (view.lastServing !== undefined) return undefined;
  const rested = view.lastIdle || (view.spec.load === 'on-demand' && view.lastRested);
  return view.lastLoadsFor ?? (rested ? view.firstCaller : undefined);
}

/** The idle time counts from then on. */
function hasLoaded({ workloads }: SlotView): boolean {
  return workloads.some(({ alive, standing, known }) => alive && standing === 'current' && known.probe?.status === 'passing');
}

function idleTimedOut(view: SlotView): Finding | undefined {
  const { idleTimeoutMs } = view.spec.lifecycle;
  if (view.lastActiveAt === undefined || view.now - view.lastActiveAt < idleTimeoutMs || isInUse(view)) return undefined;
  return { reason: 'IdleTimedOut', message: `No request for ${idleTimeoutMs / 1000} s; the next one loads the slot again` };
}

/** Until when a slot that should run does, as long as nothing but time passes. Monotonic milliseconds. */
export function wantedUntil(view: SlotView): number {
  const { lastActiveAt, spec } = view;
  if (whyAhead(view) !== undefined) return Number.POSITIVE_INFINITY;
  const idleAt = lastActiveAt === undefined || isInUse(view) ? Number.POSITIVE_INFINITY : lastActiveAt + spec.lifecycle.idleTimeoutMs;
  return Math.min(idleAt, abandonedAt(view) ?? Number.POSITIVE_INFINITY);
}

/** Only the leader knows of all requests, so a follower takes what the leader keeps running to be in use. */
function isInUse({ waiting, inFlight, leads, workloads }: SlotView): boolean {
  return waiting > 0 || inFlight > 0 || (!leads && workloads.some(({ alive }) => alive));
}

/** Whether a slot rests, or would if nothing loaded it ahead of requests, as far as its last publication shows. */
export function isAtRest(
  { name, spec }: DesiredSlot,
  {
    published,
    lastActiveAt,
    now,
  }: { readonly published: PublishedSlot | undefined; readonly lastActiveAt: number | undefined; readonly now: number },
  traffic: ReturnType<Traffic['read']>,
): boolean {
  const decision = published?.decision;
  const inFlight = decision?.serving === undefined ? 0 : (traffic.workloads.get(decision.serving)?.inFlight ?? 0);
  if (!spec.enabled || decision === undefined || inFlight > 0 || (traffic.demand.get(name)?.waiting ?? 0) > 0) return false;
  return !decision.wanted || (lastActiveAt !== undefined && now - lastActiveAt >= spec.lifecycle.idleTimeoutMs);
}

interface ActivityFacts {
  readonly slot: DesiredSlot;
  readonly now: number;
  /** The answer of the last pass; undefined if the slot was never of use. */
  readonly before: number | undefined;
  readonly traffic: ReturnType<Traffic['read']>;
  readonly workloads: readonly ObservedWorkload[];
  /** Those that have disappeared since the last pass, with requests that ended then. Default: none. */
  readonly vanished?: readonly Pick<ObservedWorkload, 'id'>[] | undefined;
  readonly published: PublishedSlot | undefined;
  /** What changed in the slot in this pass. */
  readonly edit: SlotEdit;
  /** This controller begins to lead in this pass. */
  readonly takesOver: boolean;
  readonly hasFailures: boolean;
}

/**
 * When a slot was last of use, which decides when it is unloaded: monotonic milliseconds. Requests count, those that
 * only asked for the slot included. So do, as reasons not to unload it yet, an edit of a slot that is always loaded
 * (other than a change of its replicas), a load that has not finished, one that failed and will be tried again, and a
 * workload that was found running.
 */
export function deriveLastActive(facts: ActivityFacts): number | undefined {
  const { slot, now, before, traffic, workloads, vanished = [] } = facts;
  const used = vanished.length === 0 ? workloads : [...workloads, ...vanished];
  const hasRequests = used.some(({ id }) => (traffic.workloads.get(id)?.inFlight ?? 0) > 0);
  if (hasRequests || (traffic.demand.get(slot.name)?.waiting ?? 0) > 0 || isOwedTime(facts)) return now;
  return later(before, lastRequestAt(slot.name, used, traffic));
}

/** When a request last asked for the slot, began or ended: monotonic milliseconds; undefined without one. */
export function lastRequestAt(
  name: SlotName,
  workloads: readonly Pick<ObservedWorkload, 'id'>[],
  traffic: ReturnType<Traffic['read']>,
): number | undefined {
  let at = traffic.demand.get(name)?.lastAskedAt;
  for (const { id } of workloads) at = later(at, traffic.workloads.get(id)?.lastUsedAt);
  return at;
}

function later(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? (left ?? right) : Math.max(left, right);
}

function isOwedTime({ slot: { spec }, edit, before, workloads, published, takesOver, hasFailures }: ActivityFacts): boolean {
  const always = spec.load === 'always';
  const last = published?.decision;
  const edited = edit === 'edited' || edit === 'scaled-up';
  if (always && edited) return true;
  // A load that no request has asked for gives no reason to keep the slot.
  if (last?.ahead !== undefined && !takesOver) return false;
  const loading = last?.state === 'pulling' || last?.state === 'starting' || last?.state === 'warming';
  const retrying = always && last?.state === 'offline' && last.wanted && hasFailures;
  const found = (before === undefined || takesOver) && workloads.some(({ phase }) => phase === 'running' || phase === 'created');
  return loading || retrying || found;
}
