/** Servers that sleep: they get no requests, only idle ones are put to sleep, and the condition says what their probes showed. */
import type { SlotName } from '../../../../src/schema/words/names.ts';
import type { Planned } from '../journal.ts';
import type { Rule } from './rule.ts';

export const judgeSleep: Rule = ({ world, life, wrong }) => {
  const bornAt = world.clock.now();
  /** When a request last asked for a slot, or ended. */
  const usedAt = new Map<SlotName, number>();

  function judgeIdle({ plan, desired, observed, now }: Planned): void {
    for (const { name, slot } of plan.actions) {
      if (name !== 'sleep' || !observed.leads) continue;
      const idleMs = now - (usedAt.get(slot) ?? Number.NEGATIVE_INFINITY);
      const least = desired.slots.get(slot)?.spec.lifecycle.idleTimeoutMs ?? 0;
      if (idleMs < least) wrong(`A server of "${slot}" is put to sleep, which had requests ${idleMs} ms ago`);
    }
  }
  function judgeCondition({ plan, observed }: Planned): void {
    if (observed.runtime.kind === 'unreachable') return;
    const asleep = new Set(
      observed.runtime.facts.workloads.filter(({ id }) => observed.histories.get(id)?.probe?.status === 'asleep').map(({ slot }) => slot),
    );
    for (const { name, conditions, findings } of plan.decisions.values()) {
      if (findings.some(({ reason }) => reason === 'InternalError')) continue;
      const says = conditions.some(({ type, status }) => type === 'Sleeping' && status === 'True');
      if (says !== asleep.has(name)) wrong(`The condition of "${name}" says that ${says ? 'a server' : 'no server'} sleeps`);
    }
  }
  return {
    planned(present) {
      judgeIdle(present);
      judgeCondition(present);
    },
    look() {
      for (const { slot, answers, hold } of life.traffic.requests) {
        if (answers.length > 0) continue;
        usedAt.set(slot, world.clock.now());
        if (hold !== undefined && world.isAsleep(hold, bornAt)) wrong(`A request to "${slot}" is sent to "${hold}", which sleeps`);
      }
    },
  };
};
