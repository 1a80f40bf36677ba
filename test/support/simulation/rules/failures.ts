/** No failure is counted that did not happen: each one has a cause in the world, or an answer of a port, of its own. */
import type { SlotName, WorkloadId } from '../../../../src/schema/names.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import type { ObservedWorkload } from '../../../../src/reconciler/ports.ts';
import { endpointKey } from '../deeds.ts';
import type { Call, Planned } from '../journal.ts';
import type { Rule } from './rule.ts';

/** So many probes without a pass make a workload unhealthy. */
const UNHEALTHY_AFTER = 3;

export const judgeFailures: Rule = ({ world, life, wrong }) => {
  const { deeds } = world;
  const known = new Set<string>();
  const failed: Call[] = [];
  const used = new Map<Call, Set<SlotName>>();
  const counted = new Map<string, number>();
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
  function probesSince(workload: ObservedWorkload | undefined, from: number): { readonly failed: number; readonly passed: boolean } {
    const answers = (workload?.endpoints ?? [])
      .flatMap((endpoint) => deeds.probes.get(endpointKey(endpoint)) ?? [])
      .filter(({ at, by }) => at >= from && by === life.journal);
    const last = Math.max(from, ...answers.filter(({ passed }) => passed).map(({ at }) => at));
    return { failed: answers.filter(({ at, passed }) => !passed && at >= last).length, passed: answers.some(({ passed }) => passed) };
  }
  /** What a dead controller asked for before may still happen; and what happened before a new leader began is not its business. */
  function hasVanished(id: WorkloadId): boolean {
    if (takesOver) return false;
    return deeds.vanished.has(id) || id.startsWith('lie-') || [...(deeds.stops.get(id) ?? [])].some((each) => each !== life.journal);
  }
  const workloads = new Map<string, ObservedWorkload>();
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
        const key = `${id} ${desired.slots.get(slot)?.generation}`;
        const times = (counted.get(key) ?? 0) + 1;
        counted.set(key, times);
        return id !== undefined && times <= (deeds.exits.get(id)?.length ?? 0);
      }
      case 'vanish':
        return id !== undefined && hasVanished(id);
      case 'start-timeout':
        return (
          attempt.at - (firstSeen.get(String(id)) ?? beganAt) >= (lifecycle?.startTimeoutMs ?? 0) &&
          !probesSince(seen, Math.max(beganAt, seen?.startedAt ?? 0)).passed
        );
      case 'probe':
        return observed.traits.network === 'pods' || probesSince(seen, seen?.startedAt ?? 0).failed >= UNHEALTHY_AFTER;
      case 'drift':
        return id !== undefined && deeds.altered.has(id);
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
      const { observed } = planned;
      takesOver = observed.leads && !led;
      led = observed.leads;
      for (const [slot, { failures }] of observed.attempts) {
        for (const attempt of failures) {
          const key = `${slot} ${attempt.at} ${attempt.kind} ${attempt.workload}`;
          if (known.has(key)) continue;
          known.add(key);
          if (!happened(slot, attempt, planned))
            wrong(`A failure of "${slot}" did not happen: ${attempt.kind}, ${attempt.failure.message} (${attempt.workload ?? ''})`);
        }
      }
      if (observed.runtime.kind === 'reachable') {
        for (const { id, startedAt } of observed.runtime.facts.workloads)
          if (!firstSeen.has(id)) firstSeen.set(id, Math.max(beganAt, startedAt ?? planned.now));
        for (const each of observed.runtime.facts.workloads)
          if (each.endpoints.length > 0 || !workloads.has(each.id)) workloads.set(each.id, each);
      }
    },
  };
};
