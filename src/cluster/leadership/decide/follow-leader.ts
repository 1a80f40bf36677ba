/**
 * The board of a replica that does not lead: its own, with the attempts, failures and pending changes that the leader
 * published. Pure.
 */
import { defined } from '../../../schema/pod/kube-fields.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import type { Condition, SlotStatus } from '../../../schema/status/slot-status.ts';
import type { Admission, BoardSlot, BoardView } from '../../../reconciler/board.ts';
import { refuseStalled } from '../../../reconciler/decide/rules/admission.ts';
import { namesOf } from '../../../reconciler/decide/outcome/board-slot.ts';

export function followLeader(view: BoardView, statuses: ReadonlyMap<SlotName, SlotStatus>, followEach = followSlot): BoardView {
  const slots = new Map<SlotName, BoardSlot>();
  let followed = false;
  let renamed = false;
  for (const slot of view.slots.values()) {
    const published = statuses.get(slot.name);
    const next = published?.observedGeneration === slot.generation ? followEach(slot, published) : slot;
    followed ||= next !== slot;
    renamed ||= next.status.model !== slot.status.model;
    slots.set(slot.name, next);
  }
  if (!followed) return view;
  return { ...view, slots, names: renamed ? namesOf(slots) : view.names };
}

export function followSlot(slot: BoardSlot, published: SlotStatus): BoardSlot {
  const { name, provider, backend, endpoint, memoryBytes, conditions, rollout } = slot.status;
  const status: SlotStatus = {
    // The leader does not publish these so; this replica knows them itself.
    ...defined({ endpoint, memoryBytes, rollout }),
    ...published,
    name,
    provider,
    ...defined({ backend }),
    conditions: withMissing(published.conditions, conditions),
  };
  return { ...slot, admission: admissionOf(slot, published), status };
}

/** The resource of an idle slot has no `Ready` condition, since tools would wait for it; the API shows one. */
function withMissing(published: readonly Condition[], own: readonly Condition[]): readonly Condition[] {
  const missing = own.filter(({ type }) => published.every((condition) => condition.type !== type));
  return missing.length === 0 ? published : [...missing, ...published];
}

/** Reasons for which the newest text is not in force. An earlier one is, and its server answers or is started again. */
const OF_THE_NEWEST_TEXT: ReadonlySet<Reason> = new Set(['SpecInvalid', 'RolledBack', 'EvaluationFailed']);

/** Refuses requests that would wait in vain. */
function admissionOf({ name, admission }: BoardSlot, { conditions }: SlotStatus): Admission {
  const stalled = conditions.find(({ type }) => type === 'Stalled');
  if (admission.kind !== 'park' || stalled?.status !== 'True' || OF_THE_NEWEST_TEXT.has(stalled.reason)) return admission;
  return refuseStalled(name, stalled);
}
