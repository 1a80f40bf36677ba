/** Since when what an earlier controller published has been true: a restart of the service is no transition of a slot. Pure. */
import type { Condition, SlotState } from '../../../schema/slot-status.ts';

/** What an earlier controller published of a slot. Times are Unix milliseconds. */
export interface EarlierStatus {
  readonly state: SlotState;
  readonly since: number;
  readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'lastTransitionAt'>[];
}

interface Times {
  readonly state: SlotState;
  readonly since: number;
  readonly conditions: readonly Condition[];
}

/** Gives the times back to what is as it was. A time in the future means that the clock was set back since; it counts as now. */
export function resumeTimes(present: Times, earlier: EarlierStatus | undefined, now: number): Pick<Times, 'since' | 'conditions'> {
  if (earlier === undefined) return present;
  const conditions = present.conditions.map((condition) => {
    const before = earlier.conditions.find(({ type }) => type === condition.type);
    return before?.status === condition.status ? { ...condition, lastTransitionAt: Math.min(before.lastTransitionAt, now) } : condition;
  });
  return { since: present.state === earlier.state ? Math.min(earlier.since, now) : present.since, conditions };
}

/** The slot is as ready as it was before the restart, so that nothing more is to be resumed. Until then its workload may only not have been probed yet. */
export function hasResumed(conditions: readonly Condition[], earlier: EarlierStatus): boolean {
  const statusOf = (all: EarlierStatus['conditions']) => all.find(({ type }) => type === 'Ready')?.status;
  return statusOf(conditions) === statusOf(earlier.conditions);
}
