/** Which slot a request goes to, or why to none. Looks at the board only; whether the slot may be entered now is its admission. */
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { ErrorCode } from '../../schema/error-codes.ts';
import type { Capability } from '../../schema/provider-kinds.ts';
import { DEFAULT_SLOT_OF_CAPABILITY } from './inference-paths.ts';

export type RouteDecision =
  | { readonly kind: 'slot'; readonly slot: BoardSlot }
  | { readonly kind: 'refuse'; readonly code: ErrorCode; readonly message: string }
  /** No pass has finished yet: nothing is known, so nothing is refused. */
  | { readonly kind: 'unknown' };

/** A model's name in a message is cut at this length: it comes from the client and may be anything. */
const SHOWN_NAME_LENGTH = 200;
/** As many known names as a message lists. */
const SHOWN_NAMES = 50;

/** Of several slots that answer to one name: those that can do it, then those that are open, then those worth waiting for. */
export function route(capability: Capability, path: string, model: string | undefined, board: BoardView): RouteDecision {
  if (board.version === 0) return { kind: 'unknown' };
  const name = model ?? DEFAULT_SLOT_OF_CAPABILITY[capability];
  const candidates = board.names.get(name);
  let best: BoardSlot | undefined;
  let bestRank = Number.POSITIVE_INFINITY;
  for (const slotName of candidates ?? []) {
    const slot = board.slots.get(slotName);
    if (slot === undefined) continue;
    const rank = rankOf(slot, capability);
    if (rank >= bestRank) continue;
    best = slot;
    bestRank = rank;
  }
  if (best === undefined) return unknownName(path, model, name, board);
  if (bestRank >= INCAPABLE) return incapable(best, capability, path, board);
  return { kind: 'slot', slot: best };
}

const INCAPABLE = 10;

function rankOf(slot: BoardSlot, capability: Capability): number {
  if (!slot.capabilities.includes(capability)) return INCAPABLE;
  switch (slot.admission.kind) {
    case 'open':
      return 0;
    case 'park':
      return 1;
    case 'refuse':
      return 2;
    default:
      return slot.admission satisfies never;
  }
}

function unknownName(path: string, model: string | undefined, name: string, board: BoardView): RouteDecision {
  for (const [slot, problems] of board.refused) {
    if (slot !== name) continue;
    const reason = problems[0]?.message ?? 'its text is refused';
    return { kind: 'refuse', code: 'slot.stalled', message: `Correct the file of slot "${slot}": ${reason}` };
  }
  const known = knownNames(board);
  const message =
    model === undefined
      ? `Name a model: the default slot "${name}" of "${path}" does not exist; ${known}`
      : `Use a known model instead of "${shown(model)}"; ${known}`;
  return { kind: 'refuse', code: 'model.not_found', message };
}

function incapable(slot: BoardSlot, capability: Capability, path: string, board: BoardView): RouteDecision {
  const able = [...board.slots.values()].filter((other) => other.capabilities.includes(capability)).map((other) => `"${other.name}"`);
  const serves = slot.capabilities.length === 0 ? 'nothing yet' : slot.capabilities.join(', ');
  const instead = able.length === 0 ? 'no slot does' : `use ${able.slice(0, SHOWN_NAMES).join(', ')}`;
  return {
    kind: 'refuse',
    code: 'model.unsupported',
    message: `Send "${path}" to a slot that serves ${capability}: "${slot.name}" with model "${slot.model}" serves ${serves}; ${instead}`,
  };
}

function knownNames(board: BoardView): string {
  const { names } = board;
  if (names.size === 0) return 'there is none yet: add a slot';
  const listed = names
    .keys()
    .take(SHOWN_NAMES)
    .map((name) => `"${name}"`)
    .toArray()
    .join(', ');
  const more = names.size > SHOWN_NAMES ? ` and ${names.size - SHOWN_NAMES} more` : '';
  return `known are ${listed}${more}`;
}

function shown(text: string): string {
  return text.length <= SHOWN_NAME_LENGTH ? text : `${text.slice(0, SHOWN_NAME_LENGTH)}…`;
}
