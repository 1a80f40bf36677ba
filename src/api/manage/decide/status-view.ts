/** `GET /api/status`: one line per slot, from the board alone, so that it never waits for anything. */
import type { BoardSlot, BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/names.ts';
import { formatProblem } from '../../../schema/spec-problem.ts';
import type { SlotTraffic } from '../../../gateway/traffic.ts';
import { toJson } from './to-json.ts';

/** Pure, as long as `traffic` is. */
export function viewStatus(board: BoardView, traffic: (slot: SlotName) => SlotTraffic) {
  const slots = [...board.slots.values()].map((entry) => slotLine(entry, traffic(entry.name)));
  const refused = [...board.refused]
    .filter(([name]) => !board.slots.has(name))
    .map(([name, problems]) => ({
      name,
      state: 'offline',
      model: undefined,
      provider: undefined,
      backend: undefined,
      ready: false,
      reason: 'SpecInvalid',
      message: problems.map((problem) => formatProblem(problem)).join('; '),
      inFlight: 0,
      parked: 0,
    }));
  return [...slots, ...refused].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toJson);
}

function slotLine({ name, status: { state, model, provider, backend, conditions } }: BoardSlot, { inFlight, parked }: SlotTraffic) {
  const { status, reason = '', message = '' } = conditions.find(({ type }) => type === 'Ready') ?? {};
  return { name, state, model, provider, backend, ready: status === 'True', reason, message, inFlight, parked };
}
