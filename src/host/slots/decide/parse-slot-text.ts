/** Parses the TOML text of a slot into a spec, or problems with file, line and column. Never throws. Pure. */
import { judgeText, settleRollout, type Checks, type RolloutState, type Settlement } from '../../../evaluation/decide/rollout-state.ts';
import { parseDocument, placeProblems } from '../../../files/toml/decide/parse-document.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { parseSlot, type SlotSpec, type SpecProblem } from '../../../schema/slot/slot-spec.ts';
import type { DesiredSlot, DesiredState } from '../../../reconciler/ports.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import { chooseText, type AcceptedText, type PausedText } from '../../../schema/slot/paused-text.ts';

type Table = Readonly<Record<string, unknown>>;

export type ParsedSlotText =
  | { readonly ok: true; readonly spec: SlotSpec; readonly document: Table; /** Cases that judge a new model. */ readonly checks?: Checks }
  | {
      readonly ok: false;
      readonly problems: readonly SpecProblem[];
      /** The text with camelCase keys; undefined unless it is valid TOML. */
      readonly document: Table | undefined;
    };

/** `file` appears in problems. */
export function parseSlotText(name: SlotName, text: string, file: string): ParsedSlotText {
  const read = parseDocument(text);
  if (!read.ok) return { ok: false, document: undefined, problems: [{ path: [], message: read.message, file, ...read.position }] };
  const parsed = parseSlot(name, read.document);
  if (parsed.ok) return { ok: true, spec: parsed.spec, document: read.document };
  return { ok: false, document: read.document, problems: placeProblems(text, file, parsed.problems) };
}

/** State of a slot between reads and across restarts. */
export interface AcceptedSlot {
  /** Grows by one with each change of meaning. */
  readonly generation: number;
  /** Undefined if the slot was deleted, or this version no longer accepts its last good text. */
  readonly lastGood: AcceptedText | undefined;
  /** The newest text while rollouts are paused, which is not in force. */
  readonly paused?: PausedText | undefined;
  /** Set where cases judge a new model. */
  readonly rollout?: RolloutState | undefined;
}

export type AcceptedSlots = ReadonlyMap<SlotName, AcceptedSlot>;

interface Acceptance extends Pick<DesiredState, 'slots' | 'refused'> {
  /** Includes deleted slots, so that their generation never decreases. */
  readonly accepted: AcceptedSlots;
}

/**
 * Decides the spec in force: a valid text replaces it, an invalid one keeps it, a missing one removes it. `parsed`:
 * every slot with a text, valid or not. `last`: the result of the last read. An unchanged slot is the same object as
 * before.
 */
export function acceptSlots(last: Omit<Acceptance, 'refused'>, parsed: ReadonlyMap<SlotName, ParsedSlotText>): Acceptance {
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
    else {
      const { generation, lastGood, paused, rollout } = slot;
      const found = { name, spec: lastGood.spec, generation, problems, ...defined({ paused, rollout }) };
      slots.set(name, sameOrNew(last.slots.get(name), found));
    }
  }
  return { slots, refused, accepted };
}

function sameOrNew(before: DesiredSlot | undefined, slot: DesiredSlot): DesiredSlot {
  const isSame =
    before?.spec === slot.spec &&
    before.generation === slot.generation &&
    before.problems === slot.problems &&
    before.paused === slot.paused &&
    before.rollout === slot.rollout;
  return isSame ? before : slot;
}

const NO_PROBLEMS: readonly SpecProblem[] = [];

function acceptOne(before: AcceptedSlot | undefined, text: ParsedSlotText): AcceptedSlot | undefined {
  if (!text.ok) return before;
  const { spec, document, checks } = text;
  const newest = before?.paused ?? before?.rollout?.rolledBack ?? before?.lastGood;
  const hasSameChecks = before?.rollout === undefined || before.rollout.checks?.digest === checks?.digest;
  if (before !== undefined && newest?.spec === spec && hasSameChecks) return before;
  const isSame = newest !== undefined && isSameValue(newest.spec, spec);
  const generation = (before?.generation ?? 0) + (isSame ? 0 : 1);
  const chosen = chooseText(before?.lastGood, { spec, document });
  if (chosen.paused !== undefined)
    return { generation, lastGood: chosen.inForce, ...defined({ ...chosen, inForce: undefined, rollout: before?.rollout }) };
  const { inForce, rollout } = judgeText({ inForce: before?.lastGood, rollout: before?.rollout }, chosen.inForce, checks);
  return { generation, lastGood: inForce, ...defined({ rollout }) };
}

/** Returns `slot` itself if the settlement is void. */
export function settleSlot(slot: AcceptedSlot, settlement: Settlement): AcceptedSlot {
  const { generation, lastGood, rollout } = slot;
  if (lastGood === undefined || settlement.generation !== generation) return slot;
  const settled = settleRollout({ inForce: lastGood, rollout }, settlement);
  return settled.rollout === rollout ? slot : { ...slot, lastGood: settled.inForce, rollout: settled.rollout };
}
