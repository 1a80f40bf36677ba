/** Decides which spec of each slot is in force: a valid text replaces the last good spec, an invalid one leaves it in force, a missing one removes it. Pure. */
import type { DesiredSlot, DesiredState } from '../../../reconciler/ports.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { SlotSpec, SpecProblem } from '../../../schema/slot/slot-spec.ts';
import type { ParsedSlotText } from './parse-slot-text.ts';

/** What is remembered of a slot between reads, and across restarts. */
export interface AcceptedSlot {
  /** Grows by one with each change of the slot's meaning. */
  readonly generation: number;
  /** Undefined if the slot was deleted, or if this version of the program no longer accepts its last good text. */
  readonly lastGood: { readonly spec: SlotSpec; readonly document: Readonly<Record<string, unknown>> } | undefined;
}

export type AcceptedSlots = ReadonlyMap<SlotName, AcceptedSlot>;

export interface Acceptance extends Pick<DesiredState, 'slots' | 'refused'> {
  /** Includes deleted slots, without a last good spec, so that their generation never decreases. */
  readonly accepted: AcceptedSlots;
}

/** What the last read returned. */
export interface AcceptedBefore {
  readonly accepted: AcceptedSlots;
  readonly slots: DesiredState['slots'];
}

/** `parsed` contains every slot that has a text now, valid or not. A slot in which nothing changed is the same object as before. */
export function acceptSlots(last: AcceptedBefore, parsed: ReadonlyMap<SlotName, ParsedSlotText>): Acceptance {
  const before = last.accepted;
  const slots = new Map<SlotName, DesiredSlot>();
  const refused = new Map<SlotName, readonly SpecProblem[]>();
  const accepted = new Map<SlotName, AcceptedSlot>();
  for (const [name, { generation }] of before) if (!parsed.has(name)) accepted.set(name, { generation, lastGood: undefined });
  for (const [name, text] of parsed) {
    const slot = acceptOne(before.get(name), text);
    const problems = text.ok ? NO_PROBLEMS : text.problems;
    if (slot !== undefined) accepted.set(name, slot);
    if (slot?.lastGood === undefined) refused.set(name, problems);
    else slots.set(name, sameOrNew(last.slots.get(name), { name, spec: slot.lastGood.spec, generation: slot.generation, problems }));
  }
  return { slots, refused, accepted };
}

function sameOrNew(before: DesiredSlot | undefined, slot: DesiredSlot): DesiredSlot {
  const isSame = before?.spec === slot.spec && before.generation === slot.generation && before.problems === slot.problems;
  return isSame ? before : slot;
}

const NO_PROBLEMS: readonly SpecProblem[] = [];

function acceptOne(before: AcceptedSlot | undefined, text: ParsedSlotText): AcceptedSlot | undefined {
  if (!text.ok) return before;
  const { spec, document } = text;
  if (before?.lastGood?.spec === spec) return before;
  const generation = before?.generation ?? 0;
  const isSame = before?.lastGood !== undefined && isSameValue(before.lastGood.spec, spec);
  return { generation: isSame ? generation : generation + 1, lastGood: { spec, document } };
}
