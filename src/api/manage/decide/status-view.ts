/** `GET /api/status`: one line a slot, from the board alone, so that it never waits on anything. */
import type { BoardSlot, BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/names.ts';
import { formatProblem } from '../../../schema/spec-problem.ts';
import type { SlotTraffic } from '../../metrics.ts';

/** Pure, as long as `traffic` is. */
export function viewStatus(board: BoardView, traffic: (slot: SlotName) => SlotTraffic) {
  const slots = [...board.slots.values()].map((entry) => statusLine(entry, traffic(entry.name)));
  const refused = [...board.refused]
    .filter(([name]) => !board.slots.has(name))
    .map(([name, problems]) => ({
      name,
      state: 'offline',
      model: null,
      provider: null,
      backend: null,
      ready: false,
      reason: 'SpecInvalid',
      message: problems.map((problem) => formatProblem(problem)).join('; '),
      in_flight: 0,
      parked: 0,
    }));
  return [...slots, ...refused].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function statusLine(entry: BoardSlot, traffic: SlotTraffic) {
  const { status } = entry;
  const ready = status.conditions.find((condition) => condition.type === 'Ready');
  return {
    name: entry.name,
    state: entry.state,
    model: status.model,
    provider: status.provider,
    backend: status.backend,
    ready: ready?.status === 'True',
    reason: ready?.reason ?? '',
    message: ready?.message ?? '',
    in_flight: traffic.inFlight,
    parked: traffic.parked,
  };
}
