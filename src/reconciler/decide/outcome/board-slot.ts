/** What the board shows of a slot, and the names of slots. Pure. */
import type { SlotStatus } from '../../../schema/status/slot-status.ts';
import type { BoardSlot } from '../../board.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Action } from '../facts/actions.ts';
import type { PublishedSlot } from '../facts/facts.ts';
import { explainSlot, missLines } from './explain.ts';
import { presetNames } from '../../../schema/slot/presets.ts';
import type { SlotName } from '../../../schema/words/names.ts';

export function boardSlot(
  { slot, actions }: { readonly slot: DesiredSlot; readonly actions: readonly Action[] },
  { decision }: Pick<PublishedSlot, 'decision'>,
  status: SlotStatus,
): BoardSlot {
  const { name, spec, generation, problems, paused, rollout } = slot;
  const lastLog = decision.lastFailure?.logTail;
  return {
    name,
    capabilities: decision.capabilities,
    ...(decision.servedModel === undefined ? {} : { model: decision.servedModel }),
    ...(decision.voices === undefined ? {} : { voices: decision.voices }),
    admission: decision.admission,
    targets: decision.targets,
    status,
    spec,
    generation,
    problems,
    ...(paused === undefined ? {} : { paused }),
    ...(rollout?.rolledBack === undefined ? {} : { rolledBack: rollout.rolledBack.spec }),
    ...(lastLog === undefined ? {} : { lastLog: lastLog.map(({ text }) => text) }),
    ...(decision.memory === undefined ? {} : { memory: decision.memory }),
    explain: (askedAt, reader) => [explainSlot(decision, actions, askedAt, reader), ...missLines(status.rollout)].join('\n'),
  };
}

/** Slots by the names that clients may send. A slot's own name wins over the names of other slots. */
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
    const { default: id, aliases, presets } = spec.model;
    for (const key of [id, status.model, ...aliases]) add(key, name);
    for (const [key] of presetNames({ name, aliases, presets })) add(key, name);
  }
  return names;
}
