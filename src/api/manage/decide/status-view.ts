/** `GET /api/status`: one line per slot, from the board alone, so that it never waits for anything. */
import type { z } from 'zod';
import type { BoardView } from '../../../reconciler/board.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { formatProblem } from '../../../schema/slot/spec-problem.ts';
import type { Condition, SlotStatus } from '../../../schema/status/slot-status.ts';
import type { SlotTraffic } from '../../../gateway/traffic/traffic.ts';
import type { Immutable } from '../../server/answer.ts';
import type { SlotLine } from '../../../schema/status/answers.ts';

/** Pure, as long as `traffic` is. */
export function viewStatus(board: BoardView, traffic: (slot: SlotName) => SlotTraffic): readonly Line[] {
  const slots = [...board.slots.values()].map((entry) => slotLine(entry.status, traffic(entry.name)));
  const refused = [...board.refused]
    .filter(([name]) => !board.slots.has(name))
    .map(([name, problems]) => {
      const message = problems.map((problem) => formatProblem(problem)).join('; ');
      const conditions = [{ type: 'Ready', status: 'False', reason: 'SpecInvalid', message }] as const;
      return slotLine({ name, state: 'offline', conditions }, { inFlight: 0, parked: 0 });
    });
  return [...slots, ...refused].sort((a, b) => (a.name < b.name ? -1 : 1));
}

type Line = Immutable<z.output<typeof SlotLine>>;

type LineFacts = Pick<SlotStatus, 'name' | 'state'> &
  Partial<Pick<SlotStatus, 'model' | 'provider' | 'backend'>> & {
    readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[];
  };

function slotLine({ name, state, model, provider, backend, conditions }: LineFacts, { inFlight, parked, progress }: SlotTraffic): Line {
  const { status, reason = '', message = '' } = conditions.find(({ type }) => type === 'Ready') ?? {};
  return {
    name,
    state,
    model: model ?? null,
    provider: provider ?? null,
    backend: backend ?? null,
    ready: status === 'True',
    reason,
    message,
    in_flight: inFlight,
    parked,
    progress: progress ?? null,
  };
}
