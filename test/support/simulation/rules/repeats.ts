/** Whatever a controller starts again backs off, unless a request asks for it; and no image is pulled that is there. */
import type { SlotName } from '../../../../src/schema/words/names.ts';
import type { DesiredSlot, Workload } from '../../../../src/reconciler/ports.ts';
import type { Planned } from '../journal.ts';
import { countsOn, delayMs, type Rule } from './rule.ts';

interface Starts {
  readonly slot: DesiredSlot;
  /** By revision. */
  readonly times: Map<string, { count: number; at: number }>;
}

export const judgeRepeats: Rule = ({ world, wrong }) => {
  const { clock } = world;
  const starts = new Map<SlotName, Starts>();
  const updates = new WeakSet<Workload>();
  let last: Planned | undefined;

  /** A request is a reason to start what was unloaded, each time. */
  function isAskedFor(name: SlotName, since: number): boolean {
    const { load, lifecycle } = last?.desired.slots.get(name)?.spec ?? {};
    const mayUnload = load === 'on-demand' || lifecycle?.idleTimeoutMs !== Number.POSITIVE_INFINITY;
    return mayUnload && (last?.observed.demand.get(name)?.lastAskedAt ?? 0) >= since;
  }
  function renew({ desired, observed }: Planned): void {
    for (const name of starts.keys()) if (!desired.slots.has(name) || !observed.leads) starts.delete(name);
    for (const [name, slot] of desired.slots) {
      const before = starts.get(name);
      const counts =
        countsOn(before?.slot, slot) && (before?.slot.spec.cluster.replicas !== 0 || before.slot.generation === slot.generation);
      starts.set(name, { slot, times: before !== undefined && counts ? before.times : new Map() });
    }
  }
  return {
    called({ name, key, workload }) {
      if (name === 'pullImage' && world.runtime.hasImage(key.slice('pullImage:'.length))) wrong(`"${key}" pulls what is there`);
      if (name !== 'apply' || workload === undefined || updates.has(workload)) return;
      const before = starts.get(workload.slot)?.times.get(workload.revision);
      // One that was altered from outside is replaced: `repairs.ts` judges how soon.
      const replaces = world.runtime.list().some(({ slot, revision }) => slot === workload.slot && revision === workload.revision);
      if (before === undefined || replaces || isAskedFor(workload.slot, before.at)) return;
      const early = before.at + delayMs(before.count) - clock.now();
      if (early > 0)
        wrong(`Slot "${workload.slot}" starts again ${early} ms too early, after ${before.count} starts that nobody asked for`);
    },
    answered({ name, workload, started }) {
      if (name !== 'apply' || workload === undefined || started === undefined || updates.has(workload)) return;
      const { times } = starts.get(workload.slot) ?? {};
      times?.set(workload.revision, { count: (times.get(workload.revision)?.count ?? 0) + 1, at: clock.now() });
    },
    planned(planned) {
      last = planned;
      renew(planned);
      for (const { name, args } of planned.plan.actions)
        if (name === 'apply' && args.updatesInPlace !== undefined) updates.add(args.workload);
    },
  };
};
