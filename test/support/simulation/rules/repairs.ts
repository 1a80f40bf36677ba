/** Repairs are counted as they happened, only what was altered is repaired, and the more often, the later. */
import type { SlotName } from '../../../../src/schema/words/names.ts';
import type { Action } from '../../../../src/reconciler/decide/facts/actions.ts';
import type { DesiredSlot, Workload } from '../../../../src/reconciler/ports.ts';
import type { Planned } from '../journal.ts';
import { countsOn, delayMs, type Rule } from './rule.ts';

interface Count {
  readonly slot: Pick<DesiredSlot, 'generation' | 'spec'>;
  times: number;
  at: number;
}

export const judgeRepairs: Rule = ({ world, wrong }) => {
  const { clock, deeds } = world;
  /** Of the present generation of each slot, and of the present term. */
  const counts = new Map<SlotName, Count>();
  const inPlace = new WeakSet<Workload>();
  let led = false;

  function renew({ desired, observed }: Planned): void {
    for (const name of counts.keys()) if (!desired.slots.has(name) || (led && !observed.leads)) counts.delete(name);
    led = observed.leads;
    for (const [name, slot] of desired.slots) {
      const before = counts.get(name);
      const none = { times: 0, at: 0 };
      if (before?.slot !== slot) counts.set(name, { ...none, ...(countsOn(before?.slot, slot) ? before : {}), slot });
    }
  }
  function count(slot: SlotName): void {
    const known = counts.get(slot);
    if (known === undefined) return;
    known.times += 1;
    known.at = clock.now();
  }
  function judgeCounts({ observed, now }: Planned): void {
    for (const [name, { times, at }] of counts) {
      const known = observed.attempts.get(name)?.repairs;
      // A repair that has just ended may not be known yet.
      const least = at === now ? times - 1 : times;
      if ((known?.times ?? 0) < least || (known?.times ?? 0) > times)
        wrong(`Slot "${name}" was repaired ${times} times, and ${known?.times ?? 0} repairs are counted`);
      if (known !== undefined && !deeds.altered.has(known.workload))
        wrong(`"${known.workload}" is said to be repaired, and nobody altered it`);
    }
  }
  function judgeRepair(action: Action, now: number): void {
    const before = counts.get(action.slot);
    if (!isRepair(action) || before === undefined || before.times === 0) return;
    const early = before.at + delayMs(before.times) - now;
    if (early > 0) wrong(`Slot "${action.slot}" is repaired ${early} ms too early, after ${before.times} repairs`);
  }
  return {
    answered({ name, workload, failure }) {
      if (name === 'apply' && workload !== undefined && failure === undefined && inPlace.has(workload)) count(workload.slot);
    },
    planned(planned) {
      const { plan, observed, now } = planned;
      renew(planned);
      judgeCounts(planned);
      if (!observed.leads) return;
      for (const action of plan.actions) {
        judgeRepair(action, now);
        if (action.name === 'stop' && isRepair(action)) count(action.slot);
        if (action.name === 'apply' && isRepair(action)) inPlace.add(action.args.workload);
      }
      if (observed.runtime.kind === 'unreachable') return;
      for (const { name, stable } of plan.decisions.values()) if (stable) counts.delete(name);
    },
  };
};

/** Somebody altered a workload, which is therefore replaced or updated. */
function isRepair(action: Action): boolean {
  if (action.name === 'stop') return action.args.failure?.kind === 'drift';
  return action.name === 'apply' && action.args.updatesInPlace?.altered === true;
}
