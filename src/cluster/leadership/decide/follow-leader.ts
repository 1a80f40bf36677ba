/**
 * The board of a replica that does not lead. What it lets in and where it sends it is its own: it sees the same pods. What was tried, failed and is waited
 * for only the leader knows, and a slot's status is where the leader says it. Pure.
 */
import type { SlotName } from '../../../schema/names.ts';
import type { Condition, SlotStatus } from '../../../schema/slot-status.ts';
import type { Admission, BoardSlot, BoardView } from '../../../reconciler/board.ts';
import { namesOf } from '../../../reconciler/decide/outcome/board-names.ts';
import { refuseStalled } from '../../../reconciler/decide/rules/admission.ts';

/** Statuses of another generation of a slot are not believed: its text has changed since. */
export function followLeader(view: BoardView, statuses: ReadonlyMap<SlotName, SlotStatus>): BoardView {
  const slots = new Map<SlotName, BoardSlot>();
  let followed = false;
  let renamed = false;
  for (const slot of view.slots.values()) {
    const said = statuses.get(slot.name);
    const next = said?.observedGeneration === slot.generation ? follow(slot, said) : slot;
    followed ||= next !== slot;
    renamed ||= next.status.model !== slot.status.model;
    slots.set(slot.name, next);
  }
  if (!followed) return view;
  return { ...view, slots, names: renamed ? namesOf(slots) : view.names };
}

function follow(slot: BoardSlot, said: SlotStatus): BoardSlot {
  const { name, provider, backend, endpoint, memoryBytes, conditions } = slot.status;
  const status: SlotStatus = {
    // An endpoint is where this replica sends requests, and what it counts is known here as well.
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...said,
    name,
    provider,
    backend,
    conditions: withOwn(said.conditions, conditions),
  };
  return {
    name: slot.name,
    state: said.state,
    provider: slot.provider,
    capabilities: slot.capabilities,
    model: slot.model,
    aliases: slot.aliases,
    admission: admissionOf(slot, said),
    targets: slot.targets,
    status,
    spec: slot.spec,
    generation: slot.generation,
    problems: slot.problems,
    // Written when somebody asks.
    get explanation() {
      return slot.explanation;
    },
  };
}

/** A slot at rest has no `Ready` in the cluster, where tools would wait for it; people who ask here are told as on any other runtime. */
function withOwn(said: readonly Condition[], own: readonly Condition[]): readonly Condition[] {
  const missing = own.filter(({ type }) => said.every((condition) => condition.type !== type));
  return missing.length === 0 ? said : [...missing, ...said];
}

/** Waiting does not help where the leader has given up. That the last good text of a slot stays in force is no reason to turn requests away. */
function admissionOf({ name, admission }: BoardSlot, { conditions }: SlotStatus): Admission {
  const stalled = conditions.find(({ type }) => type === 'Stalled');
  if (admission.kind !== 'park' || stalled?.status !== 'True' || stalled.reason === 'SpecInvalid') return admission;
  return refuseStalled(name, stalled);
}
