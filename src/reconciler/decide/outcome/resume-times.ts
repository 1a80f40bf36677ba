/** How long an earlier controller's publications have been true: a restart is no transition of a slot. Pure. */
import type { Condition, SlotState } from '../../../schema/status/slot-status.ts';

/** What an earlier controller published of a slot. Times are Unix milliseconds. */
export interface EarlierStatus {
  readonly state: SlotState;
  readonly since: number;
  readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'lastTransitionAt'>[];
}

interface Times extends EarlierStatus {
  readonly conditions: readonly Condition[];
}

/** What this controller published of a slot last. */
type Before = Pick<EarlierStatus, 'conditions'> & { readonly decision: Pick<EarlierStatus, 'state'> };

/**
 * Gives the times back to what became again as it was. A time in the future means that the clock was set back since; it
 * counts as now, and remains so when the clock is set forward again, because what did not change since `before` keeps
 * its time.
 */
export function resumeTimes(
  present: Times,
  { earlier, before }: { readonly earlier: EarlierStatus | undefined; readonly before: Before | undefined },
  now: number,
): Pick<Times, 'since' | 'conditions'> {
  if (earlier === undefined) return present;
  const find = (all: EarlierStatus['conditions'], type: Condition['type']) => all.find((each) => each.type === type);
  const conditions = present.conditions.map((condition) => {
    const { type, status } = condition;
    const old = find(earlier.conditions, type);
    if (old?.status !== status || (before !== undefined && find(before.conditions, type)?.status === status)) return condition;
    return { ...condition, lastTransitionAt: Math.min(old.lastTransitionAt, now) };
  });
  const resumes = present.state === earlier.state && present.state !== before?.decision.state;
  return { since: resumes ? Math.min(earlier.since, now) : present.since, conditions };
}

/** The slot is as ready as before the restart; until then its workload may just not have been probed yet. */
export function hasResumed(conditions: readonly Condition[], earlier: EarlierStatus): boolean {
  const statusOf = (all: EarlierStatus['conditions']) => all.find(({ type }) => type === 'Ready')?.status;
  return statusOf(conditions) === statusOf(earlier.conditions);
}

/** The worst of what happened in a pass; for metrics. `accepted`: the plan broke no rule. */
export function passResult({ readable, reachable, accepted }: Readonly<Record<'readable' | 'reachable' | 'accepted', boolean>>) {
  if (!accepted) return 'refused';
  if (!reachable) return 'unreachable';
  return readable ? 'ok' : 'unreadable';
}
