/** Which slots serve a model name that a client sends. Pure. */
import type { SlotName } from '../../../schema/words/names.ts';
import type { BoardSlot } from '../../board.ts';

/** A slot has its own name, the model that answers, the wanted model and the aliases. Its own name takes precedence over what other slots have. */
export function namesOf(slots: ReadonlyMap<SlotName, BoardSlot>): ReadonlyMap<string, readonly SlotName[]> {
  const names = new Map<string, SlotName[]>();
  const add = (key: string, slot: SlotName): void => {
    const list = names.get(key);
    if (list === undefined) names.set(key, [slot]);
    // A slot adds its keys in a row, except for its own name, which is added first.
    else if (list[0] !== slot && list.at(-1) !== slot) list.push(slot);
  };
  for (const name of slots.keys()) add(name, name);
  for (const { name, status, spec } of slots.values()) {
    for (const key of [spec.model.default, status.model, ...spec.model.aliases]) add(key, name);
  }
  return names;
}
