/** Which specs stand after a reading: a good text replaces what stood, a bad one leaves it, a missing one takes it away. Pure. */
import type { DesiredSlot } from '../../../reconciler/ports.ts';
import type { SlotName } from '../../../schema/names.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import type { SlotSpec, SpecProblem } from '../../../schema/slot-spec.ts';
import type { ReadSlot } from './read-slot.ts';

/** What is kept of a slot from one reading to the next, and over restarts. */
export interface AcceptedSlot {
  /** Grows by one with each change of what the slot means. */
  readonly generation: number;
  /** The last good one; undefined when there was one that this version of the program no longer takes, or the slot was deleted. */
  readonly good: { readonly spec: SlotSpec; readonly document: Readonly<Record<string, unknown>> } | undefined;
}

export interface AcceptedSlots {
  readonly slots: ReadonlyMap<SlotName, DesiredSlot>;
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
  /** To be kept; it holds deleted slots too, without a good spec, so that their generation never falls. */
  readonly accepted: ReadonlyMap<SlotName, AcceptedSlot>;
}

/** `read` has every slot that has a text now, good or bad. */
export function acceptSlots(before: ReadonlyMap<SlotName, AcceptedSlot>, read: ReadonlyMap<SlotName, ReadSlot>): AcceptedSlots {
  const slots = new Map<SlotName, DesiredSlot>();
  const refused = new Map<SlotName, readonly SpecProblem[]>();
  const accepted = new Map<SlotName, AcceptedSlot>();
  for (const [name, { generation }] of before) if (!read.has(name)) accepted.set(name, { generation, good: undefined });
  for (const [name, reading] of read) {
    const present = acceptOne(before.get(name), reading);
    const problems = reading.ok ? [] : reading.problems;
    if (present !== undefined) accepted.set(name, present);
    if (present?.good === undefined) refused.set(name, problems);
    else slots.set(name, { name, spec: present.good.spec, generation: present.generation, problems });
  }
  return { slots, refused, accepted };
}

function acceptOne(before: AcceptedSlot | undefined, reading: ReadSlot): AcceptedSlot | undefined {
  if (!reading.ok) return before;
  const good = { spec: reading.spec, document: reading.document };
  if (before?.good !== undefined && isSameValue(before.good.spec, reading.spec)) return { generation: before.generation, good };
  return { generation: (before?.generation ?? 0) + 1, good };
}
