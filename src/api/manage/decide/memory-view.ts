/** How memory was shared out, as `GET /api/slots/{name}/explain` returns it. Pure. */
import type { z } from 'zod';
import type { BoardSlot } from '../../../reconciler/board.ts';
import type { Immutable } from '../../answer.ts';
import type { MemoryShare } from '../answers.ts';

export function viewMemory(memory: BoardSlot['memory']): Immutable<z.output<typeof MemoryShare>> | null {
  if (memory === undefined) return null;
  const { admitted, mayWait, placement, pool, neededBytes, budgetBytes, aheadBytes, othersBytes, candidates } = memory;
  return {
    admitted,
    may_wait: mayWait,
    placement: Object.entries(placement).map(([where, bytes]) => ({ memory: where, bytes: Math.round(bytes) })),
    short:
      budgetBytes === undefined
        ? null
        : {
            memory: pool,
            bytes: Math.round(neededBytes),
            budget_bytes: Math.round(budgetBytes),
            promised_bytes: Math.round(aheadBytes),
            others_bytes: Math.round(othersBytes),
          },
    candidates: candidates.map(({ slot, bytes, priority, incumbent, admitted: gets, group }) => ({
      slot,
      bytes: Math.round(bytes),
      priority,
      running: incumbent,
      admitted: gets,
      because: group,
    })),
  };
}
