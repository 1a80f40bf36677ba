/** What an inspection looks at, and what it finds. Types only. */
import type { SlotName, WorkloadId } from '../../../schema/words/names.ts';
import type { DesiredSlot, ObservedWorkload } from '../../ports.ts';
import type { Desired, Observed, Plan } from './facts.ts';
import type { Template } from './workload.ts';

/** A rule that a plan breaks. `slot` is undefined where the plan as a whole breaks it. */
export interface Objection {
  readonly slot: SlotName | undefined;
  readonly message: string;
}

/** All facts that checks look things up in. */
export interface Case {
  readonly plan: Plan;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
  readonly byId: ReadonlyMap<WorkloadId, ObservedWorkload>;
  readonly bySlot: ReadonlyMap<SlotName, readonly ObservedWorkload[]>;
  /** What the slot asks for; undefined where that is not known. */
  readonly templateOf: (slot: DesiredSlot) => Template | undefined;
}
