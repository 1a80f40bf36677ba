/**
 * Decides how many replicas a slot needs for the requests that it has. As an HPA does: more at once, and fewer only
 * when no moment of the window needed more. So the number goes up and down at most once in a window. Pure.
 */
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';

export type Autoscale = NonNullable<SlotSpec['cluster']['autoscale']>;

/** Replicas that were needed at a time, in monotonic milliseconds. */
export interface Need {
  readonly at: number;
  readonly replicas: number;
}

interface Sample {
  readonly now: number;
  /** The present number of replicas. */
  readonly replicas: number;
  /** Requests in flight on the slot's workloads, and those that wait for it. */
  readonly requests: number;
}

/**
 * `needs`: from the call before, oldest first; undefined for the first one, for which the present number counts as
 * needed, because an earlier leader knew why it is so.
 */
export function decideReplicas(autoscale: Autoscale, { now, replicas, requests }: Sample, needs?: readonly Need[]) {
  const need = { at: now, replicas: within(autoscale, Math.ceil(requests / autoscale.inFlight)) };
  const known = needs ?? [{ at: now, replicas }];
  // Earlier ones that needed no more than now no longer decide anything, so each entry needs less than the one before.
  const higher = known.filter((earlier) => now - earlier.at < autoscale.windowMs && earlier.replicas > need.replicas);
  return { replicas: within(autoscale, higher[0]?.replicas ?? need.replicas), needs: [...higher, need] };
}

const within = ({ min, max }: Autoscale, replicas: number): number => Math.min(max, Math.max(min, replicas));
