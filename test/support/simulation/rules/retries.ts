/** Every failure counts, for each slot that it concerns, and nothing is tried again before its back-off is over. */
import type { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import type { AttemptKind } from '../../../../src/reconciler/decide/facts/actions.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import type { Workload } from '../../../../src/reconciler/ports.ts';
import type { Call, Planned } from '../journal.ts';
import { countsOn, delayMs, type Rule } from './rule.ts';

/** A failure that must be counted, and since when. */
interface Owed {
  readonly slot: SlotName;
  readonly kind: AttemptKind;
  readonly at: number;
  readonly workload: WorkloadId | undefined;
  /** So many more plans may be made without it. */
  plans: number;
}

export const judgeRetries: Rule = ({ world, life, wrong }) => {
  const { clock, deeds } = world;
  let last: Planned | undefined;
  let owed: Owed[] = [];
  /** Of the present generation of each slot. */
  const failures = new Map<SlotName, { at: number; count: number; portTaken: boolean }>();
  const stops = new Map<WorkloadId, { at: number; count: number; startedAt: number | undefined }>();
  const ended = new Set<WorkloadId>();
  const inPlace = new WeakMap<Workload, { readonly altered: boolean; readonly workload: WorkloadId }>();
  const updates = new Map<SlotName, { at: number; count: number; generation: number; id: WorkloadId }>();

  function add(slot: SlotName, portTaken: boolean): void {
    const before = failures.get(slot) ?? { at: 0, count: 0, portTaken: false };
    failures.set(slot, {
      at: clock.now(),
      count: before.count + (portTaken ? 0 : 1),
      portTaken: portTaken || (before.portTaken && before.at === clock.now()),
    });
  }
  function judgeStart(slot: SlotName, what: string): void {
    const before = failures.get(slot);
    if (before === undefined || before.portTaken) return;
    const early = before.at + delayMs(before.count) - clock.now();
    if (early > 0) wrong(`Slot "${slot}" tries to ${what} ${early} ms before its back-off is over, after ${before.count} failures`);
  }
  /** A workload that is seen to have been started again is another one. In a cluster it is not, although its pods are. */
  function startOf(id: WorkloadId | undefined): number | undefined {
    if (world.cluster !== undefined || last?.observed.runtime.kind !== 'reachable') return undefined;
    return last.observed.runtime.facts.workloads.find((each) => each.id === id)?.startedAt;
  }
  function judgeStop(call: Call): void {
    const before = call.id === undefined ? undefined : stops.get(call.id);
    if (before === undefined || before.startedAt !== startOf(call.id)) return;
    if (clock.now() < before.at + delayMs(before.count)) wrong(`"${call.key}" is tried again too early, after ${before.count} failures`);
  }
  function judgeCall(call: Call): void {
    const actions = last?.plan.actions ?? [];
    if (call.name === 'stop') judgeStop(call);
    if (call.name === 'pullModel' || call.name === 'pullImage') {
      const slot = actions.find(
        ({ name, args }) =>
          (name === 'pullModel' && call.key === `pullModel:${args.model}`) ||
          (name === 'pullImage' && call.key === `pullImage:${args.image.reference}`),
      )?.slot;
      if (slot !== undefined) judgeStart(slot, `pull "${call.key}"`);
    }
    if (call.name !== 'apply' || call.workload === undefined) return;
    const { slot, generation } = call.workload;
    const update = inPlace.get(call.workload);
    if (update === undefined) return judgeStart(slot, 'start');
    if (update.altered) return;
    const before = updates.get(slot);
    const count = before?.generation === generation ? before.count : 0;
    // Another workload has another history, also if the answer to its start was lost.
    if (before?.id === update.workload && clock.now() < before.at + delayMs(count))
      wrong(`Slot "${slot}" is updated again too early, after ${count} times`);
  }
  /** Failures of an earlier generation, or of an earlier term, do not count. */
  function renew({ desired, observed }: Planned): void {
    for (const name of new Set([...failures.keys(), ...owed.map(({ slot }) => slot)])) {
      const [now, before] = [desired.slots.get(name), last?.desired.slots.get(name)];
      const same = now !== undefined && countsOn(before, now);
      if (same && observed.leads && last?.observed.leads === true) continue;
      failures.delete(name);
      owed = owed.filter(({ slot }) => slot !== name);
    }
    for (const name of updates.keys()) if (!desired.slots.has(name)) updates.delete(name);
  }
  function settle({ observed, now }: Planned): void {
    const left: Owed[] = [];
    for (const each of owed) {
      const found = observed.attempts.get(each.slot)?.failures.some((attempt) => pays(attempt, each)) === true;
      if (found) continue;
      // A workload that ends during its start is removed, and its crash counted, when the start has ended.
      const starts = each.kind === 'crash' && observed.running.has(`apply:${each.slot}`);
      if (now > each.at && !starts) each.plans -= 1;
      if (each.plans < 0) wrong(`A failure of "${each.slot}" is not counted: ${each.kind} ${each.workload ?? ''}`);
      else left.push(each);
    }
    owed = left;
  }
  /** Workloads that served a slot, as it is desired now, and ended by a fault. */
  function noticeEnds({ plan, observed }: Planned): void {
    if (world.cluster !== undefined || observed.runtime.kind === 'unreachable') return;
    const { workloads } = observed.runtime.facts;
    for (const { name, serving, wanted } of last?.plan.decisions.values() ?? []) {
      if (serving === undefined || ended.has(serving)) continue;
      const now = workloads.find(({ id }) => id === serving);
      if (now !== undefined && now.phase !== 'exited') continue;
      const fact =
        last?.observed.runtime.kind === 'reachable' ? last.observed.runtime.facts.workloads.find(({ id }) => id === serving) : undefined;
      const excused =
        !wanted ||
        fact === undefined ||
        fact.revision !== plan.decisions.get(name)?.revision ||
        deeds.altered.has(serving) ||
        deeds.stops.has(serving) ||
        plan.decisions.get(name)?.wanted !== true;
      ended.add(serving);
      if (excused || failures.has(name)) continue;
      // A vanished workload is counted in the same pass; one that exited, when its removal begins, which an action that has just ended may delay.
      owed.push({ slot: name, kind: now === undefined ? 'vanish' : 'crash', at: 0, workload: serving, plans: now === undefined ? 0 : 2 });
    }
  }
  function answered(call: Call): void {
    const { name, failure, id, signal, workload, key } = call;
    const now = clock.now();
    if (name === 'stop' && id !== undefined && !signal.aborted && failure !== undefined) {
      const startedAt = startOf(id);
      const before = stops.get(id);
      stops.set(id, { at: now, count: (before !== undefined && before.startedAt === startedAt ? before.count : 0) + 1, startedAt });
    }
    if (name === 'apply' && workload !== undefined && failure === undefined) {
      const before = updates.get(workload.slot);
      const update = inPlace.get(workload);
      if (update === undefined) updates.delete(workload.slot);
      else {
        const { generation, slot } = workload;
        const count = before?.generation === generation && before.id === update.workload ? before.count + 1 : 1;
        updates.set(slot, { at: now, generation, count, id: update.workload });
      }
    }
    if (failure === undefined || signal.aborted || !life.leads()) return;
    if (name === 'apply' && workload !== undefined) charge(workload.slot, 'apply', failure.reason === 'PortTaken');
    if (name !== 'pullModel' && name !== 'pullImage') return;
    for (const decision of last?.plan.decisions.values() ?? []) {
      if (decision.waitsFor.includes(key)) charge(decision.name, name === 'pullModel' ? 'pull-model' : 'pull-image', false);
    }
  }
  function charge(slot: SlotName, kind: AttemptKind, portTaken: boolean): void {
    add(slot, portTaken);
    const now = clock.now();
    owed.push({ slot, kind, at: now, workload: undefined, plans: 0 });
  }
  return {
    called: judgeCall,
    answered,
    planned(planned) {
      renew(planned);
      noticeEnds(planned);
      settle(planned);
      last = planned;
      for (const action of planned.plan.actions) {
        if (action.name === 'apply' && action.args.updatesInPlace !== undefined)
          inPlace.set(action.args.workload, action.args.updatesInPlace);
      }
    },
  };
};

function pays({ kind, at, workload }: Attempt, owed: Owed): boolean {
  return kind === owed.kind && (owed.workload === undefined ? at === owed.at : workload === owed.workload);
}
