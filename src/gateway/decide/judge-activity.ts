/** Whether a pass is needed for the board to show what a slot is doing. Pure. */
import type { SlotState } from '../../schema/status/slot-status.ts';

/**
 * - `shown`: the board shows it already.
 * - `wait`: the board shows a slot as serving whose requests are so short that none may be in flight at the moment. To be judged again.
 * - `news`: a pass is needed.
 */
export type ActivityVerdict = 'shown' | 'wait' | 'news';

export interface SlotActivity {
  /** On the board; undefined if the slot is not there. */
  readonly state: SlotState | undefined;
  /** Number of requests in flight on its workloads. */
  readonly inFlight: number;
  /** A workload got its first request or lost its last one since the activity was judged before. */
  readonly hasChanged: boolean;
}

export function judgeActivity({ state, inFlight, hasChanged }: SlotActivity): ActivityVerdict {
  if (state === (inFlight > 0 ? 'serving' : 'idle')) return 'shown';
  return state === 'serving' && hasChanged ? 'wait' : 'news';
}
