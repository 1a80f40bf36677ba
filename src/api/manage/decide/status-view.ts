/** `GET /api/status`: one line per slot, from the board alone, so that it never waits for anything. */
import type { BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/names.ts';
import { formatProblem } from '../../../schema/spec-problem.ts';
import type { Condition, SlotStatus } from '../../../schema/slot-status.ts';
import type { SlotTraffic } from '../../../gateway/traffic.ts';
import { toJson } from './to-json.ts';

/** Pure, as long as `traffic` is. */
export function viewStatus(board: BoardView, traffic: (slot: SlotName) => SlotTraffic) {
  const slots = [...board.slots.values()].map((entry) => slotLine(entry.status, traffic(entry.name)));
  const refused = [...board.refused]
    .filter(([name]) => !board.slots.has(name))
    .map(([name, problems]) => {
      const message = problems.map((problem) => formatProblem(problem)).join('; ');
      const conditions = [{ type: 'Ready', status: 'False', reason: 'SpecInvalid', message }] as const;
      return slotLine({ name, state: 'offline', conditions }, { inFlight: 0, parked: 0 });
    });
  return [...slots, ...refused].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toJson);
}

type LineFacts = Pick<SlotStatus, 'name' | 'state'> &
  Partial<Pick<SlotStatus, 'model' | 'provider' | 'backend'>> & {
    readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[];
  };

function slotLine({ name, state, model, provider, backend, conditions }: LineFacts, { inFlight, parked }: SlotTraffic) {
  const { status, reason = '', message = '' } = conditions.find(({ type }) => type === 'Ready') ?? {};
  return { name, state, model, provider, backend, ready: status === 'True', reason, message, inFlight, parked };
}
