/** Decides when to collect garbage although no memory is needed: after a while without work, if a collection is worth its cost. Pure. */
import type { Traffic } from '../../../reconciler/ports.ts';

/** What was measured since the last check. */
export interface IdleSample {
  /** Share of one core, from 0 to 1. */
  readonly cpuShare: number;
  /** Requests are in flight or parked, or were since the last check. */
  readonly hadRequests: boolean;
  /** RAM that the heap and the buffers outside of it occupy. */
  readonly heapBytes: number;
}

export interface IdleState {
  /** Number of idle checks in a row. */
  readonly idleChecks: number;
  /** Size of the heap after the last collection; undefined before the first. */
  readonly leftBytes: number | undefined;
}

export const NEVER_COLLECTED: IdleState = { idleChecks: 0, leftBytes: undefined };

/** Watches, reports and probes of 2,000 slots take 8 to 10 percent. */
const IDLE_CPU_SHARE = 0.15;
const IDLE_CHECKS = 2;
/** A collection takes 10 to 200 ms, so it must free a noticeable amount. */
const WORTHWHILE_GROWTH = 1.2;

export function timeToCollect(
  state: IdleState,
  { cpuShare, hadRequests: busy, heapBytes }: IdleSample,
): { readonly collect: boolean; readonly state: IdleState } {
  const idleChecks = busy || cpuShare > IDLE_CPU_SHARE ? 0 : state.idleChecks + 1;
  const grown = state.leftBytes === undefined || heapBytes > state.leftBytes * WORTHWHILE_GROWTH;
  return { collect: idleChecks >= IDLE_CHECKS && grown, state: { ...state, idleChecks } };
}

/** Returns whether a request is in flight or parked, or was within the last `withinMs`. */
export function hadRequests({ workloads, demand }: ReturnType<Traffic['read']>, now: number, withinMs: number): boolean {
  const isUsed = [...workloads.values()].some(
    ({ inFlight, lastUsedAt = Number.NEGATIVE_INFINITY }) => inFlight > 0 || lastUsedAt > now - withinMs,
  );
  return isUsed || [...demand.values()].some(({ waiting }) => waiting > 0);
}
