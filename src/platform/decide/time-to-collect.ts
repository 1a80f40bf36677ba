/** When garbage is collected although nobody needs the room: once nothing has happened for a while, and there may be some. Pure. */
import type { Traffic } from '../../reconciler/ports.ts';

/** What was seen of this process over the time since it was looked at last. */
export interface RestSample {
  /** Of one core. */
  readonly cpuShare: number;
  /** Requests are in flight or parked, or were within that time. */
  readonly asked: boolean;
  /** Of memory that the heap takes. */
  readonly heapBytes: number;
}

export interface RestState {
  /** How often in a row nothing was going on. */
  readonly quiet: number;
  /** What the last collection left; undefined before the first. */
  readonly leftBytes: number | undefined;
}

export const NEVER_COLLECTED: RestState = { quiet: 0, leftBytes: undefined };

/** Watches, leases and probes of thousands of slots cost some percent. */
const QUIET_SHARE = 0.05;
const QUIET_TIMES = 2;
/** A collection costs some ten to two hundred milliseconds: it has to be worth it. */
const WORTH_GROWTH = 1.2;

export function timeToCollect(
  state: RestState,
  { cpuShare, asked, heapBytes }: RestSample,
): { readonly collect: boolean; readonly state: RestState } {
  const quiet = asked || cpuShare > QUIET_SHARE ? 0 : state.quiet + 1;
  const grown = state.leftBytes === undefined || heapBytes > state.leftBytes * WORTH_GROWTH;
  return { collect: quiet >= QUIET_TIMES && grown, state: { ...state, quiet } };
}

/** Whether a request is on its way through, or was within `withinMs`. */
export function wasAsked({ workloads, demand }: ReturnType<Traffic['read']>, now: number, withinMs: number): boolean {
  for (const { inFlight, lastUsedAt } of workloads.values())
    if (inFlight > 0 || (lastUsedAt ?? Number.NEGATIVE_INFINITY) > now - withinMs) return true;
  for (const { waiting } of demand.values()) if (waiting > 0) return true;
  return false;
}
