/** Restarts are counted as they happened, and no more is started than the memory budget admits. */
import type { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import type { DesiredSlot, Workload } from '../../../../src/reconciler/ports.ts';
import type { Call, Planned } from '../journal.ts';
import { countsOn, type Rule } from './rule.ts';

interface Count {
  readonly slot: Pick<DesiredSlot, 'generation' | 'spec'>;
  starts: number;
  /** Those of them that happened at this very moment, and may not be known yet. */
  lately: number;
  at: number;
}

export const judgeStarts: Rule = ({ world, wrong }) => {
  const counts = new Map<SlotName, Count>();
  const updates = new WeakSet<Workload>();
  const memory = new Map<WorkloadId, number>();
  const asked = new WeakMap<Workload, number>();
  const starting = new Map<Workload, number>();
  let budgetBytes: number | undefined;
  const { clock } = world;

  function add(slot: SlotName, starts: (before: number) => number): void {
    const count = counts.get(slot);
    if (count === undefined) return;
    if (count.at !== clock.now()) count.lately = 0;
    count.at = clock.now();
    const after = starts(count.starts);
    count.lately += after - count.starts;
    count.starts = after;
  }
  function renew({ desired }: Planned): void {
    for (const name of counts.keys()) if (!desired.slots.has(name)) counts.delete(name);
    for (const [name, slot] of desired.slots) {
      const before = counts.get(name);
      const none = { starts: 0, lately: 0, at: 0 };
      if (before === undefined || before.slot !== slot)
        counts.set(name, { ...none, ...(countsOn(before?.slot, slot) ? before : {}), slot });
    }
  }
  function judgeCounts({ observed, now }: Planned): void {
    for (const [name, { starts, lately, at }] of counts) {
      const known = observed.attempts.get(name)?.starts ?? 0;
      const least = at === now ? starts - lately : starts;
      if (known < least || known > starts) wrong(`Slot "${name}" was started ${starts} times, and ${known} starts are counted`);
    }
  }
  function judgeMemory(call: Call): void {
    const { workload } = call;
    if (workload === undefined || updates.has(workload) || world.cluster !== undefined || budgetBytes === undefined) return;
    // Such a swap has both at once, whatever they need.
    if (counts.get(workload.slot)?.slot.spec.lifecycle.swap === 'blue-green') return;
    const held = world.runtime.list().reduce((sum, { id, phase }) => sum + (phase === 'exited' ? 0 : (memory.get(id) ?? 0)), 0);
    const bytes = asked.get(workload) ?? 0;
    const sum = held + [...starting.values()].reduce((all, each) => all + each, 0) + bytes;
    if (sum > budgetBytes) wrong(`"${workload.name}" is started, and then workloads hold ${sum} bytes of a budget of ${budgetBytes}`);
    starting.set(workload, bytes);
  }
  return {
    called(call) {
      if (call.name === 'apply') judgeMemory(call);
    },
    answered({ name, workload, started }) {
      if (name !== 'apply' || workload === undefined) return;
      starting.delete(workload);
      if (started === undefined || updates.has(workload)) return;
      memory.set(started, asked.get(workload) ?? 0);
      add(workload.slot, (before) => before + 1);
    },
    planned(planned) {
      renew(planned);
      judgeCounts(planned);
      budgetBytes = world.memoryBudgetBytes;
      for (const action of planned.plan.actions) {
        if (action.name === 'apply') asked.set(action.args.workload, action.args.origin.memory['host'] ?? 0);
        if (action.name === 'apply' && action.args.updatesInPlace !== undefined) updates.add(action.args.workload);
        if (action.name === 'noteCrash' && action.args.failure !== undefined && action.args.startsAgain) {
          add(action.slot, (before) => Math.max(before, 1) + 1);
        }
      }
    },
    published(view) {
      for (const [name, { starts, lately }] of counts) {
        const { restarts } = view.slots.get(name)?.status ?? {};
        if (restarts === undefined) continue;
        const most = Math.max(0, starts - 1);
        const least = Math.max(0, starts - lately - 1);
        if (restarts < least || restarts > most) wrong(`Slot "${name}" was restarted ${most} times, and its status says ${restarts}`);
      }
    },
  };
};
