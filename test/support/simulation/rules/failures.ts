/** No failure is counted that did not happen: each one has a cause in the world, or an answer of a port, of its own. */
import type { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import type { DesiredSlot, ObservedWorkload } from '../../../../src/reconciler/ports.ts';
import { endpointKey } from '../deeds.ts';
import type { Call, Planned } from '../journal.ts';
import { countsOn, type Rule } from './rule.ts';

/** So many probes without a pass make a workload unhealthy. */
const UNHEALTHY_AFTER = 3;

interface Seen {
  /** As it was when it had endpoints last. */
  readonly fact: ObservedWorkload;
  /** On the clock that never jumps. */
  readonly begunAt: number | undefined;
}

export const judgeFailures: Rule = ({ world, life, wrong }) => {
  const { deeds } = world;
  const known = new Set<string>();
  /** Workloads that were stopped because others got their memory. */
  const withdrawn = new Set<string>();
  const failed: Call[] = [];
  const used = new Map<Call, Set<SlotName>>();
  const counted = new Map<string, number>();
  /** What each slot was declared as last, and how often it was edited, or removed and declared again. */
  const declarations = new Map<SlotName, { readonly slot: DesiredSlot | undefined; readonly times: number }>();
  const beganAt = world.clock.now();
  let led = life.leads();
  let takesOver = false;

  /** Uses up the answer: it cannot explain a second failure of the slot. */
  function answerFor(slot: SlotName, { at, failure: { message } }: Attempt, fits: (call: Call) => boolean): boolean {
    const call = failed.find(
      (each) => each.endedAt === at && each.failure?.message === message && fits(each) && used.get(each)?.has(slot) !== true,
    );
    if (call !== undefined) used.set(call, (used.get(call) ?? new Set()).add(slot));
    return call !== undefined;
  }
  function probesSince(workload: Seen | undefined, from: number): { readonly failed: number; readonly passed: boolean } {
    const answers = (workload?.fact.endpoints ?? [])
      .flatMap((endpoint) => deeds.probes.get(endpointKey(endpoint)) ?? [])
      .filter(({ since, by }) => since >= from && by === life.journal);
    const last = Math.max(from, ...answers.filter(({ passed }) => passed).map(({ at }) => at));
    return { failed: answers.filter(({ at, passed }) => !passed && at >= last).length, passed: answers.some(({ passed }) => passed) };
  }
  /** What a dead controller asked for before may still happen; and what happened before a new leader began is not its business. */
  function hasVanished(id: WorkloadId): boolean {
    if (takesOver) return false;
    return deeds.vanished.has(id) || id.startsWith('lie-') || isStoppedByOther(id);
  }
  function isStoppedByOther(id: WorkloadId): boolean {
    return [...(deeds.stops.get(id) ?? [])].some((each) => each !== life.journal);
  }
  const workloads = new Map<string, Seen>();
  const firstSeen = new Map<string, number>();

  function happened(slot: SlotName, attempt: Attempt, { desired, observed }: Planned): boolean {
    const { kind, workload: id } = attempt;
    const seen = workloads.get(String(id));
    const lifecycle = desired.slots.get(slot)?.spec.lifecycle;
    switch (kind) {
      case 'apply':
        return answerFor(slot, attempt, (call) => call.name === 'apply' && call.workload?.slot === slot);
      case 'pull-image':
        return answerFor(slot, attempt, (call) => call.name === 'pullImage');
      case 'pull-model':
        return answerFor(slot, attempt, (call) => call.key === `pullModel:${desired.slots.get(slot)?.spec.model.default}`);
      case 'crash': {
        // An edit begins the count again, and so does a slot that was removed and declared again.
        const key = `${id} ${declarations.get(slot)?.times}`;
        const times = (counted.get(key) ?? 0) + 1;
        counted.set(key, times);
        // A controller before may have sent the signal, which nothing records.
        const isStopped = id !== undefined && (world.host !== undefined || deeds.signalled.has(id)) && isStoppedByOther(id);
        return isStopped || (id !== undefined && times <= (deeds.exits.get(id)?.length ?? 0));
      }
      case 'vanish':
        return id !== undefined && hasVanished(id);
      case 'start-timeout':
        return (
          attempt.at - (firstSeen.get(String(id)) ?? beganAt) >= (lifecycle?.startTimeoutMs ?? 0) &&
          !probesSince(seen, Math.max(beganAt, seen?.begunAt ?? 0)).passed
        );
      case 'probe':
        if (attempt.failure.reason === 'SleepFailed' || attempt.failure.reason === 'WakeFailed')
          return id !== undefined && (deeds.sleepless.has(id) || probesSince(seen, seen?.begunAt ?? 0).failed > 0);
        return observed.traits.network === 'pods' || probesSince(seen, seen?.begunAt ?? 0).failed >= UNHEALTHY_AFTER;
      case 'withdrawn':
        return id !== undefined && withdrawn.has(id) && !probesSince(seen, seen?.begunAt ?? 0).passed;
      default:
        return kind satisfies never;
    }
  }
  return {
    called({ name, id }) {
      if (name === 'stop' && id !== undefined) deeds.stops.set(id, (deeds.stops.get(id) ?? new Set()).add(life.journal));
    },
    answered(call) {
      if (call.failure !== undefined && !call.signal.aborted) failed.push(call);
    },
    planned(planned) {
      const { desired, observed, plan } = planned;
      for (const { name, args, because } of plan.actions)
        if (name === 'stop' && because.reason === 'InsufficientMemory') withdrawn.add(args.workload);
      for (const [name, { times }] of declarations) if (!desired.slots.has(name)) declarations.set(name, { slot: undefined, times });
      for (const [name, slot] of desired.slots) {
        const { slot: before, times = 0 } = declarations.get(name) ?? {};
        if (before !== slot) declarations.set(name, { slot, times: countsOn(before, slot) ? times : times + 1 });
      }
      takesOver = observed.leads && !led;
      led = observed.leads;
      for (const [slot, { failures }] of observed.attempts) {
        for (const attempt of failures) {
          // An earlier controller saw it: `records.ts` compares it with what was recorded.
          if (attempt.recordedAt !== undefined) continue;
          const key = `${slot} ${attempt.at} ${attempt.kind} ${attempt.workload}`;
          if (known.has(key)) continue;
          known.add(key);
          if (!happened(slot, attempt, planned))
            wrong(`A failure of "${slot}" did not happen: ${attempt.kind}, ${attempt.failure.message} (${attempt.workload ?? ''})`);
        }
      }
      if (observed.runtime.kind === 'reachable') {
        for (const fact of observed.runtime.facts.workloads) {
          const { id } = fact;
          const begunAt = world.runtime.begunAt(fact);
          if (!firstSeen.has(id)) firstSeen.set(id, Math.max(beganAt, begunAt ?? planned.now));
          const shown = fact.endpoints.length > 0 ? fact : (workloads.get(id)?.fact ?? fact);
          workloads.set(id, { fact: shown, begunAt });
        }
      }
    },
  };
};
