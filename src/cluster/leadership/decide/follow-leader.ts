/**
 * The board of a replica that does not lead. It decides itself which requests to admit and where to send them, since it observes the same pods. Only the
 * leader knows what was tried, what failed and what is pending; this replica takes that from the status that the leader published. Pure.
 */
import type { SlotName } from '../../../schema/words/names.ts';
import type { Condition, SlotStatus } from '../../../schema/status/slot-status.ts';
import type { Admission, BoardSlot, BoardView } from '../../../reconciler/board.ts';
import { refuseStalled } from '../../../reconciler/decide/rules/admission.ts';
import { namesOf } from '../../../reconciler/decide/outcome/board-slot.ts';

/** Statuses for another generation of a slot are ignored, because the slot has changed since. `followEach` follows one slot; the service passes in one that remembers what it made. */
export function followLeader(
  view: BoardView,
  statuses: ReadonlyMap<SlotName, SlotStatus>,
  followEach: typeof followSlot = followSlot,
): BoardView {
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
  const { name, provider, backend, endpoint, memoryBytes, conditions } = slot.status;
  const status: SlotStatus = {
    // The leader does not publish these two; this replica knows them itself.
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...published,
    name,
    provider,
    ...(backend === undefined ? {} : { backend }),
    conditions: withMissing(published.conditions, conditions),
  };
  return { ...slot, admission: admissionOf(slot, published), status };
}

/** The resource of an idle slot has no `Ready` condition, since tools would wait for it. The API shows it as with any other runtime. */
function withMissing(published: readonly Condition[], own: readonly Condition[]): readonly Condition[] {
  const missing = own.filter(({ type }) => published.every((condition) => condition.type !== type));
  return missing.length === 0 ? published : [...missing, ...published];
}

/** Refuses requests that would wait in vain, because the leader has given up. An invalid document is no reason to: the last valid one stays in force. */
function admissionOf({ name, admission }: BoardSlot, { conditions }: SlotStatus): Admission {
  const stalled = conditions.find(({ type }) => type === 'Stalled');
  if (admission.kind !== 'park' || stalled?.status !== 'True' || stalled.reason === 'SpecInvalid') return admission;
  return refuseStalled(name, stalled);
}
