/** Lists models in OpenAI's format from the board, so it never waits for a load. */
import type { z } from 'zod';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { Immutable } from '../server/answer.ts';
import type { Model, ModelList } from './model-schemas.ts';

type ModelBody = Immutable<z.output<typeof Model>>;

/** Returns one entry for each model id and alias. Disabled slots are left out, so that clients do not offer models that cannot answer. */
export function listModels(view: BoardView, startedAt: number): Immutable<z.output<typeof ModelList>> {
  const entries = new Map<string, ModelBody>();
  for (const slot of view.slots.values()) {
    if (slot.admission.kind === 'refuse' && slot.admission.code === 'slot.disabled') continue;
    for (const id of [slot.spec.model.default, ...slot.spec.model.aliases]) {
      if (!entries.has(id)) entries.set(id, entryOf(id, slot, startedAt));
    }
  }
  return { object: 'list', data: [...entries.values()] };
}

/** Returns undefined if no slot has this model id, alias or name. `startedAt` in Unix milliseconds. */
export function retrieveModel(view: BoardView, id: string, startedAt: number): ModelBody | undefined {
  const [slot] = view.names.get(id)?.flatMap((name) => view.slots.get(name) ?? []) ?? [];
  return slot && entryOf(id, slot, startedAt);
}

function entryOf(id: string, slot: BoardSlot, startedAt: number): ModelBody {
  return {
    id,
    object: 'model',
    created: Math.floor(startedAt / 1000),
    owned_by: 'svc',
    slot: slot.name,
    state: slot.status.state,
    capabilities: slot.capabilities,
  };
}
